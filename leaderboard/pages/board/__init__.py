"""The page of a board: its head, its table, and its tabs."""
