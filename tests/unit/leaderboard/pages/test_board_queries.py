"""What the pages call right is what the scores count."""

from __future__ import annotations

import cir_datasets
from cir_datasets.browse import right_answers
from leaderboard import boards
from leaderboard.pages.board_queries import example_of, right_by
from leaderboard.pages.query_page import hit_words
from submissions.transcripts.openings import published_openings


def test_a_dialogue_counts_every_picture_that_its_sessions_aim_at() -> None:
    board = boards.board("shapes/dialogue_val")
    assert board.dialogue is not None
    benchmark = cir_datasets.load(board.benchmark)
    opened = {each.session: each for each in published_openings(benchmark, board.dialogue.choices)}
    several = 0
    for row in benchmark.rows():
        right = right_answers(row, right_by(board))
        assert {*right} == {*opened[row["query_id"]].targets}
        several += len(right) > 1
    assert several > 0
    assert hit_words(board, 10) == "a hit has a right picture among its first 10"


def test_an_example_says_how_many_of_the_right_pictures_count() -> None:
    alone, every = (example_of(boards.board(name)) for name in ("shapes/val", "shapes/dialogue_val"))
    assert alone.id == every.id
    assert (alone.right, alone.counted) == (2, 1)
    assert (every.right, every.counted) == (2, 2)
    assert alone.target == every.target
