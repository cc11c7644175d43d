"""Sealed challenges: made from a benchmark or rows of one's own, checked, and looked after."""
