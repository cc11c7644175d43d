"""Rank groups of a board: which entries are tested, and by which values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from leaderboard_world.entries import a_submission

from cir_metrics.sums import FloatArray
from leaderboard import boards
from leaderboard.standings import Entry, Reference
from leaderboard.standings.tested import board_groups
from submissions.comparison.groups import leader_groups

CIRR = boards.board("cirr/val")


def random_board(seed: int, methods: int, queries: int) -> list[FloatArray]:
    """Hits of methods of random strength."""
    random = np.random.default_rng(seed)
    ease, strengths = random.random(queries), random.uniform(-0.5, 0.5, methods)
    return list(random.binomial(1, np.clip(ease[None, :] + strengths[:, None], 0, 1)).astype(float))


def hits(*places: range, queries: int = 40) -> FloatArray:
    values = np.zeros(queries)
    for each in places:
        values[list(each)] = 1
    return values


def entry(name: str, value: float, rank: int | None, *, baseline: bool = False) -> Entry:
    one = a_submission(name, board=CIRR.id, baseline=baseline)
    return Entry(rank, one, value, {}, "", Reference("removed", 0, 300, "", unverified=False))


def shown(entries: list[Entry], values: dict[str, Mapping[str, FloatArray]]) -> dict[str, int]:
    return board_groups(CIRR, entries, values, {})[0]


def test_a_boards_groups_are_those_of_the_mean_of_what_ranks() -> None:
    first, second = random_board(2, 8, 300), random_board(3, 8, 300)
    values = {
        f"m{place}": {"recall@5": one, "recall_subset@1": other, "recall@1": np.zeros(300)}
        for place, (one, other) in enumerate(zip(first, second, strict=True))
    }
    entries = [
        entry(name, round(float(np.mean([terms["recall@5"], terms["recall_subset@1"]])), 12), rank)
        for rank, (name, terms) in enumerate(values.items(), start=1)
    ]
    means = [(one + other) / 2 for one, other in zip(first, second, strict=True)]
    wanted = leader_groups(means, key="cirr/val")
    assert max(wanted.group) > 2
    found = board_groups(CIRR, entries, values, {})
    assert found == (dict(zip(values, wanted.group, strict=True)), wanted.tests)
    assert board_groups(CIRR, entries, values, wanted.tests) == found


def test_baselines_and_what_has_no_rank_or_no_values_stand_outside() -> None:
    strong, weak = hits(range(30)), hits(range(5))
    terms = {name: {"recall@5": each, "recall_subset@1": each} for name, each in (("a", strong), ("z", weak))}
    inside = [entry("a", 0.75, 1), entry("z", 0.125, 9)]
    assert shown(inside, terms) == {"a": 1, "z": 2}
    outside = {
        "baseline": entry("baseline", 0.375, None, baseline=True),
        "oracle": entry("oracle", 1.0, None),
        "published": entry("published", 0.3, 3),
        "one term": entry("one term", 0.375, 4),
        "another mean": entry("another mean", 0.25, 5),
        "fewer queries": entry("fewer queries", 0.375, 6),
    }
    between = {"recall@5": hits(range(15)), "recall_subset@1": hits(range(15))}
    others = dict.fromkeys(outside, between) | {"one term": {"recall@5": between["recall@5"]}}
    others["fewer queries"] = dict.fromkeys(between, hits(range(3), queries=8))
    del others["published"]
    for one in outside.values():
        assert shown([inside[0], one, inside[1]], terms | others) == {"a": 1, "z": 2}
    assert shown([entry("between", 0.375, 2)], {"between": between}) == {"between": 1}
    without = [one for name, one in outside.items() if name != "fewer queries"]
    assert shown(without, others) == {}


def test_a_board_that_a_median_ranks_has_no_groups() -> None:
    board = boards.board("shapes/multiturn_val").model_copy(update={"primary": "median_rank"})
    entries = [entry("a", 3.0, 1), entry("b", 9.0, 2)]
    values = {"a": {"mean_rank": np.full(9, 3.0)}, "b": {"mean_rank": np.full(9, 9.0)}}
    assert board_groups(board, entries, values, {}) == ({}, {})
