"""Which numbers of a paper's table stand out: the best, the second, and those that tests tell apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cir_metrics.significance import holm
from submissions.comparison.comparing import compare
from submissions.scoring.samples import is_better, resampled_metrics

if TYPE_CHECKING:
    from submissions.comparison.result import Difference
    from submissions.papers.columns import PaperColumn

Place = tuple[str, str]
"""Benchmark or suite, and metric."""


@dataclass(frozen=True)
class Tests:
    """How the tests behind raised letters are made.

    Args:
        draws: as in `compare`, like the following.
        seed: of the draws.
        alpha: level of significance.
    """

    draws: int
    seed: int
    alpha: float


def standing_out(metric: str, texts: Sequence[str | None]) -> tuple[set[int], set[int]]:
    """Places of the best and of the second-best numbers of a column.

    Numbers that are printed alike are equal, and share their mark; the second-best are those of the next
    printed number. Where all are equal none stands out.

    Args:
        metric: which numbers are better.
        texts: numbers as printed, None where there is none.

    Example:
        >>> standing_out("recall@1", ["48.33", "50.10", "48.33", None])
        ({1}, {0, 2})
    """
    known = {place: float(text) for place, text in enumerate(texts) if text is not None}
    order = sorted(set(known.values()), reverse=is_better(metric, 1, 0))
    if len(order) < 2:
        return set(), set()
    best, second = order[:2]
    return (
        {place for place, value in known.items() if value == best},
        {place for place, value in known.items() if value == second},
    )


def is_tested(column: PaperColumn) -> bool:
    """Whether a column's numbers are means over queries, which a test is of."""
    return all(column.metric in resampled_metrics(score) for score in column.scores)


def significantly_worse(
    columns: Sequence[PaperColumn], blocks: Collection[Sequence[int]], tests: Tests
) -> tuple[dict[Place, dict[int, list[int]]], int]:
    """By column and method the methods that are significantly worse, and the number of tests.

    The tests are those of `submissions.compare`, two-sided paired randomisation tests; Holm's correction
    covers all columns and pairs of the table as one family.

    Args:
        columns: what is tested; those that are not means over queries are left out.
        blocks: places of the methods that may be tested against each other.
        tests: how they are made.
    """
    keys: list[tuple[Place, int, int]] = []
    found: list[Difference] = []
    tested: dict[str, list[PaperColumn]] = {}
    for column in columns:
        if is_tested(column):
            tested.setdefault(column.benchmark, []).append(column)
    for benchmark, own in tested.items():
        metrics = list(dict.fromkeys(column.metric for column in own))
        for block in (block for block in blocks if len(block) > 1):
            reports = [own[0].scores[place] for place in block]
            result = compare(reports, metrics=metrics, draws=tests.draws, seed=tests.seed, alpha=tests.alpha)
            for (one, other), pair in zip(combinations(block, 2), result.pairs, strict=True):
                for metric in metrics:
                    keys.append(((benchmark, metric), one, other))
                    found.append(pair.differences[metric])
    worse: dict[Place, dict[int, list[int]]] = {}
    if not found:
        return worse, 0
    adjusted = holm(np.array([each.test.p for each in found]))
    for (key, one, other), each, p in zip(keys, found, adjusted.tolist(), strict=True):
        if p <= tests.alpha:
            first_wins = is_better(key[1], each.difference, 0)
            winner, loser = (one, other) if first_wins else (other, one)
            worse.setdefault(key, {}).setdefault(winner, []).append(loser)
    return worse, len(found)
