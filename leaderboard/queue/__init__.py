"""The queue: what judges submissions (`worker`), each in a limited process of its own (`child`)."""
