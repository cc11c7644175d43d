"""Pictures and texts to vectors: one file a family."""
