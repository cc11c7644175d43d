"""The queue: what judges submissions (`worker`), each in a limited process of its own (`child`)."""

LISTS = "lists/"
"""What the names of rankings' beginnings begin with, among the values per query that the child writes."""
