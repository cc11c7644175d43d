"""Which numbers of a paper's table stand out: the best, the second, and those that tests tell apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cir_metrics.significance import holm
from submissions.comparison.comparing import compare
from submissions.scoring.samples import is_better, resampled_metrics

if TYPE_CHECKING:
    from submissions.comparison.result import Difference
    from submissions.scoring.score_report import ScoreReport

Place = tuple[str, str]
"""Benchmark or suite, and metric."""


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


def significantly_worse(
    of: Mapping[str, Sequence[ScoreReport]],
    columns: Sequence[Place],
    blocks: Collection[Sequence[int]],
    *,
    draws: int,
    seed: int,
    alpha: float,
) -> tuple[dict[Place, dict[int, list[int]]], int]:
    """By column and method the methods that are significantly worse, and the number of tests.

    The tests are those of `submissions.compare`, two-sided paired randomisation tests; Holm's correction
    covers all columns and pairs of the table as one family.

    Args:
        of: by benchmark or suite the methods' scores, in one order.
        columns: what is tested; those that are not means over queries are left out.
        blocks: places of the methods that may be tested against each other.
        draws: as in `compare`, like the following.
        seed: of the draws.
        alpha: level of significance.
    """
    keys: list[tuple[Place, int, int]] = []
    found: list[Difference] = []
    for name, reports in of.items():
        shared = set.intersection(*(set(resampled_metrics(report)) for report in reports))
        metrics = [metric for where, metric in columns if where == name and metric in shared]
        if not metrics:
            continue
        for block in (each for each in blocks if len(each) > 1):
            tested = [reports[place] for place in block]
            result = compare(tested, metrics=metrics, draws=draws, seed=seed, alpha=alpha)
            for (one, other), pair in zip(combinations(block, 2), result.pairs, strict=True):
                for metric in dict.fromkeys(metrics):
                    keys.append(((name, metric), one, other))
                    found.append(pair.differences[metric])
    worse: dict[Place, dict[int, list[int]]] = {}
    if not found:
        return worse, 0
    adjusted = holm(np.array([each.test.p for each in found]))
    for (column, one, other), each, p in zip(keys, found, adjusted.tolist(), strict=True):
        if p <= alpha:
            first_wins = is_better(column[1], each.difference, 0)
            winner, loser = (one, other) if first_wins else (other, one)
            worse.setdefault(column, {}).setdefault(winner, []).append(loser)
    return worse, len(found)
