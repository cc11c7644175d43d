"""Averages over members: macro, in which each member weighs the same, and micro, in which each query does.

The printed name of a number says which of them it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MICRO_SUFFIX = "@micro"
"""Ends the printed name of a metric that is averaged over queries, not over the members."""


def member_metric(metric: str) -> str:
    """The members' metric behind a number of a suite, `recall@10` behind `recall@10@micro`."""
    return metric.removesuffix(MICRO_SUFFIX)


def is_micro(metric: str) -> bool:
    """Whether a printed name is that of a micro mean, in which every query weighs the same."""
    return metric.endswith(MICRO_SUFFIX)


def mean_over_members(metric: str, values: Sequence[float], queries: Sequence[int]) -> float:
    """One number of a suite; of one benchmark alone its own.

    macro = (1/M) * sum_m v_m,  micro = sum_m n_m * v_m / sum_m n_m.

    Args:
        metric: printed name, which says the average.
        values: of each member.
        queries: of each member the number of queries or sessions; a macro mean does not read it.

    Example:
        >>> mean_over_members("recall@10", [0.5, 0.25], [1, 3])
        0.375
        >>> mean_over_members("recall@10@micro", [0.5, 0.25], [1, 3])
        0.3125
    """
    if is_micro(metric):
        weighted = [count * value for count, value in zip(queries, values, strict=True)]
        return math.fsum(weighted) / sum(queries)
    return math.fsum(values) / len(values)


def member_shares(metric: str, queries: Sequence[int]) -> list[float]:
    """Share of each member in a number: equal shares, or (`@micro`) by the number of queries.

    Args:
        metric: printed name of the number.
        queries: of each member the number of queries or sessions; one member alone has the whole.

    Returns:
        A share a member, adding up to 1.

    Example:
        >>> member_shares("recall@10", [30, 10]), member_shares("recall@10@micro", [30, 10])
        ([0.5, 0.5], [0.75, 0.25])
    """
    weights = queries if is_micro(metric) else [1] * len(queries)
    return [weight / sum(weights) for weight in weights]
