"""A board's standings in the formats of other places; nothing here is read back."""
