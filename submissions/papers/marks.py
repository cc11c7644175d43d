"""Which numbers of a paper's table stand out: the best, the second, and those that tests tell apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_metrics.significance import holm
from cir_metrics.sums import exact_mean
from submissions.comparison.comparing import pair_tests
from submissions.comparison.keys import samples_in_order
from submissions.scoring.samples import is_better, resampled_metrics

if TYPE_CHECKING:
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
        >>> standing_out("median_rank", ["4.00", "2.00"])
        ({1}, {0})
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
    found: list[tuple[Place, int, int, float]] = []
    tested: dict[str, list[PaperColumn]] = {}
    for column in columns:
        if is_tested(column):
            tested.setdefault(column.benchmark, []).append(column)
    samples = {name: samples_in_order(own[0].scores) for name, own in tested.items()}
    for name, own in tested.items():
        metrics = list(dict.fromkeys(column.metric for column in own))
        for block in (block for block in blocks if len(block) > 1):
            beside = [samples[name][place] for place in block]
            tested_pairs = pair_tests(beside, metrics, draws=tests.draws, seed=tests.seed)
            found += [
                ((name, metric), block[one], block[other], test.p)
                for ((one, other), metric), test in tested_pairs.items()
            ]
    worse: dict[Place, dict[int, list[int]]] = {}
    adjusted = holm([p for *_, p in found]).tolist() if found else []
    for (key, one, other, _), p in zip(found, adjusted, strict=True):
        if p <= tests.alpha:
            means = [exact_mean(samples[key[0]][place].joined(key[1])) for place in (one, other)]
            winner, loser = (one, other) if is_better(key[1], *means) else (other, one)
            worse.setdefault(key, {}).setdefault(winner, []).append(loser)
    return worse, len(found)
