"""Is what is here what the card says: verification, leaks and descriptions."""
