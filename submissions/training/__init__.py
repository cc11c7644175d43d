"""Training of the heads and of the shapes encoder."""
