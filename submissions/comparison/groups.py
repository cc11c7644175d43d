"""Rank groups: which methods tests cannot tell from the best of their group, on boards and in comparisons.

`docs/comparing.md` says which errors the tests bound, and which they do not.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cir_metrics.resampling import ALPHA, DRAWS, SEED, check_draws, check_share, check_values
from cir_metrics.significance import NEAR, PairedTests, holm
from cir_metrics.sums import FloatArray, exact_means

EQUAL = 2 * NEAR
"""Means that differ by no more than this, or than this share, are equal: boards round to twelve digits."""
_VERSION = 1
"""Goes up whenever the p-value of two methods can move, so that those kept from before are not used."""

Step = tuple[int, ...]
"""Methods of equal mean, which take one step of the walk."""


@dataclass(frozen=True)
class GroupTest:
    """The test that decided a method's group.

    Args:
        against: place of the leader that it was tested against: its own, or where it leads a group or stands
            beside one that does, that of the group above.
        p: of the test; `adjusted` by Holm's correction over the tests of all methods but the best.
    """

    against: int
    p: float
    adjusted: float


@dataclass(frozen=True)
class Groups:
    """Rank groups of methods, in the order in which these were given, from 1 on.

    Args:
        decided: by which test; None for the best, which is not tested.
        settled: whether Holm's correction over these tests rejects just those that begin a group. If not, it
            rejects more, and what it rejects beyond is left in its group.
        draws: random changes of sign of tests that are not exact.
        tests: p-values of all pairs that were looked at, to be handed to the next call.
    """

    group: tuple[int, ...]
    decided: tuple[GroupTest | None, ...]
    settled: bool
    draws: int
    tests: Mapping[str, float]


def leader_groups(
    values: Sequence[FloatArray],
    *,
    higher: bool = True,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
    key: str = "",
    known: Mapping[str, float] | None = None,
) -> Groups:
    """Groups of methods by tests against the leader of the group, with Holm's correction over n - 1 tests.

    The walk W(k), for a whole number k: the best method leads group 1. Down the order, with p_j the p-value
    of method j against the leader of the group above it, j leads the next group if k * p_j <= alpha, else it
    joins. Every method but the best has one test, so that there are m = n - 1. Whom j is tested against
    depends on k, and Holm's k on all p_j; so the two are brought to agree:

        k_0 = m;  S_i: methods that begin a group in W(k_i);  H_i: those that Holm rejects in W(k_i)'s tests
        H_i = S_i: the groups are those of W(k_i), and settled
        H_i > S_i: k_(i+1) = m - |H_i| + 1, the factor by which Holm accepted the last of H_i
        H_i < S_i: the groups are those of W(k_(i-1)), not settled

    One of the three holds, since H_i and S_i both are all methods with a p_j below some bound. The first walk
    cannot end by the third: what m * p_j <= alpha begins, Holm rejects. In the second a p_j of H_i lies above
    alpha / k_i and not above alpha / (m - |H_i| + 1), so that k falls and there are m walks at most.

    Methods of equal mean take one step of the walk and lead together, with the largest p-value of their pairs
    in place of one, which still counts once a method.

    (Paired randomisation test: Smucker, Allan and Carterette, CIKM 2007; Holm, Scandinavian Journal of
    Statistics 1979. The walk is ours.)

    Args:
        values: of each method one value per query, shape (n,), in any order of the methods.
        higher: whether the larger mean is the better one.
        alpha: level of significance, above 0 and below 1.
        draws: random changes of sign of tests that are not exact, 1 or more; doubled until there are
            m / alpha - 1 of them, so that a test may pass Holm's first step.
        seed: 0 or more.
        key: see `cir_metrics.resampling.generator`.
        known: `Groups.tests` of an earlier call, which are not made again; the result is the same.

    Raises:
        InputError: values are not finite, alpha or draws are out of range.

    Example:
        >>> best, same, worse = np.ones(40), np.arange(40) > 0, np.arange(40) > 19
        >>> found = leader_groups([worse, best, same])
        >>> found.group, [test and test.p for test in found.decided]
        ((2, 1, 1), [1.9073486328125e-06, None, 1.0])
    """
    check_share(alpha, "alpha", "a level of significance", ALPHA)
    check_draws(draws)
    matrix = check_values(np.stack(values, axis=1), "values")
    m = matrix.shape[1] - 1
    while m > alpha * (1 + draws):
        draws *= 2
    steps = _steps(exact_means(matrix).tolist(), higher=higher)
    pairs = _Pairs(matrix, draws, seed, key, known or {})
    walk = _Walk(steps, pairs, m, alpha)
    while not walk.settled:
        looser = _Walk(steps, pairs, m - len(walk.rejected) + 1, alpha)
        if len(looser.rejected) < len(looser.begins):
            break
        walk = looser
    group = tuple(walk.group[method] for method in range(m + 1))
    decided = tuple(walk.tests.get(method) for method in range(m + 1))
    return Groups(group, decided, walk.settled, draws, pairs.known)


class _Walk:
    """One way down the order of steps, W(factor); what is known of each method, by its number."""

    def __init__(self, steps: Sequence[Step], pairs: _Pairs, factor: int, alpha: float) -> None:
        leading = steps[0]
        self.group = dict.fromkeys(leading, 1)
        p_values = dict.fromkeys(leading[1:], 1.0)
        against = dict.fromkeys(leading[1:], leading[0])
        for place, step in enumerate(steps[1:], start=1):
            p = pairs.p(leading, step, steps[place + 1 :])
            begins = factor * p <= alpha
            p_values |= dict.fromkeys(step, p)
            against |= dict.fromkeys(step, leading[0])
            self.group |= dict.fromkeys(step, self.group[leading[0]] + begins)
            leading = step if begins else leading
        adjusted = holm(list(p_values.values())).tolist() if p_values else []
        self.tests = {
            method: GroupTest(against[method], p, corrected)
            for (method, p), corrected in zip(p_values.items(), adjusted, strict=True)
        }
        self.rejected = {method for method, test in self.tests.items() if test.adjusted <= alpha}
        self.begins = {method for method, above in against.items() if self.group[method] != self.group[above]}

        self.settled = self.rejected == self.begins


class _Pairs:
    """P-values of pairs: those that are known, and tests of the others."""

    def __init__(
        self, matrix: FloatArray, draws: int, seed: int, key: str, earlier: Mapping[str, float]
    ) -> None:
        self.known: dict[str, float] = {}
        self._earlier = earlier
        self._tests = PairedTests(matrix, draws=draws, seed=seed, key=key)
        how = f"{_VERSION} {draws} {seed} {key}".encode()
        # Zero has two signs, and no method differs from another by them.
        rows = np.ascontiguousarray(matrix.T + 0.0, dtype="<f8")
        self._digests = [hashlib.sha256(how + b"\0" + row.tobytes()).digest() for row in rows]

    def p(self, leading: Step, step: Step, later: Sequence[Step]) -> float:
        """The largest p-value of a method of one step and one of another; `later` may be tested next."""
        pairs = {self._name(*pair): pair for pair in itertools.product(leading, step)}
        for name, pair in pairs.items():
            if name not in self.known:
                p = self._earlier.get(name)
                self.known[name] = self._tests.test(*pair, self._next(leading, later)).p if p is None else p
        return max(self.known[name] for name in pairs)

    def _next(self, leading: Step, later: Sequence[Step]) -> Iterator[int]:
        """The methods right behind whose tests are not known either."""
        for step in later:
            names = (self._name(*pair) for pair in itertools.product(leading, step))
            if all(name in self._earlier or name in self.known for name in names):
                return
            yield from step

    def _name(self, one: int, other: int) -> str:
        """Of two methods by what their test depends on."""
        return hashlib.sha256(b"".join(sorted((self._digests[one], self._digests[other])))).hexdigest()


def _steps(means: Sequence[float], *, higher: bool) -> list[Step]:
    """Methods from the best mean to the worst, those of equal means together."""
    order = sorted(range(len(means)), key=lambda method: round(means[method], 12), reverse=higher)
    steps = [[order[0]]]
    for above, method in itertools.pairwise(order):
        if math.isclose(means[above], means[method], rel_tol=EQUAL, abs_tol=EQUAL):
            steps[-1].append(method)
        else:
            steps.append([method])
    return [tuple(step) for step in steps]
