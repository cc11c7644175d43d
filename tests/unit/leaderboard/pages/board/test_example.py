"""The example of a board's page."""

from __future__ import annotations

import cir_datasets
from leaderboard import boards
from leaderboard.pages.board.example import example_of


def test_an_example_says_how_many_of_the_right_pictures_count() -> None:
    cir_datasets.load("shapes/val")
    alone, every = (example_of(boards.board(name)) for name in ("shapes/val", "shapes/dialogue_val"))
    assert alone.id == every.id
    assert (alone.right, alone.counted) == (2, 1)
    assert (every.right, every.counted) == (2, 2)
    assert alone.target == every.target
