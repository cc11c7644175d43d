"""What the pages call right is what the scores count."""

from __future__ import annotations

import cir_datasets
from cir_datasets.rows.right import right_answers
from leaderboard import boards
from leaderboard.inspection.hits import hit_words
from submissions.transcripts.openings import published_openings


def test_a_dialogue_counts_every_picture_that_its_sessions_aim_at() -> None:
    board = boards.board("shapes/dialogue_val")
    benchmark = cir_datasets.load(board.benchmark)
    opened = {each.session: each for each in published_openings(benchmark, board.dialogue.choices)}
    several = 0
    for row in benchmark.rows():
        right = right_answers(row, board.right_by)
        assert {*right} == {*opened[row["query_id"]].targets}
        several += len(right) > 1
    assert several > 0
    assert hit_words(board, 10) == "a hit has a right picture among its first 10"
