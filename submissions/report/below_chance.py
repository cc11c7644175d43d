"""Rankings below chance; in a file of its own: only a file that finds less than a random order needs it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from cir_metrics.sums import exact_mean, exact_sums

if TYPE_CHECKING:
    from cir_metrics.sums import FloatArray

_BELOW = 0.001
"""The p-value under which a method is called worse than a random order."""


def below_chance_note(metric: str, found: FloatArray, chance_of: float) -> tuple[str, ...]:
    """What is said of rankings that find fewer targets than a random order by more than luck, else nothing.

    The test is a one-sided binomial one, of the queries with a target among the first K of their ranking. The
    mean of the queries' chances is taken as the chance of each; where they differ this makes p larger
    (Hoeffding, Ann. Math. Stat. 27, 1956). Rankings that find as many are above every p that is small.

    Args:
        metric: the recall@K or final_recall@K of the largest K. Subsets are not looked at: a ranking by the
            reference alone may be below chance there.
        found: its value of each query, 0 or 1, shape (n,).
        chance_of: the mean of the queries' chances.
    """
    p = _binomial_at_most(round(float(exact_sums(found))), len(found), chance_of)
    if p >= _BELOW:
        return ()
    note = (
        f"below chance: {metric} is {100 * exact_mean(found):.2f}, of a random order {100 * chance_of:.2f} "
        f"(one-sided binomial test, p < {_BELOW}). Are these distances, or is the worst first? Higher "
        "scores rank first. Fix: negate distances, and make the file again."
    )
    return (note,)


def _binomial_at_most(found: int, n: int, chance_of: float) -> float:
    """P(X <= found), X binomial of n draws.

    Example:
        >>> round(_binomial_at_most(1, 3, 0.5), 6)
        0.5
    """
    with localcontext(prec=30):
        right = Decimal(chance_of)
        term = (1 - right) ** n
        total = term
        for hits in range(found):
            term *= right * (n - hits) / ((1 - right) * (hits + 1))
            total += term
    return float(total)
