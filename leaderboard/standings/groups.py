"""Rank groups of a board: which methods tests cannot tell from the best of their group.

`docs/comparing.md` says which errors the tests bound, and which they do not.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cir_metrics.errors import InputError
from cir_metrics.resampling import ALPHA, DRAWS, SEED, check_alpha, check_draws, check_values
from cir_metrics.significance import NEAR, PairedTests, holm
from cir_metrics.sums import FloatArray, exact_mean, exact_means
from leaderboard.boards import Board
from leaderboard.standings import Entry

_EQUAL = 2 * NEAR
"""Means that differ by no more than this, or than this share, are equal: boards round to twelve digits."""
_VERSION = 1
"""Goes up whenever the p-value of two methods can move, so that those kept from before are not used."""

Step = tuple[int, ...]
"""Places of methods of equal mean, which take one step of the walk."""
ValuesOf = Callable[[str], Mapping[str, FloatArray] | None]
"""From a submission's id to its values per query by metric, or None where there are none."""


@dataclass(frozen=True)
class Groups:
    """Rank groups of methods, in the order in which these were given.

    Args:
        group: of each method, 1, 2, ...
        leader: place of the method that leads its group.
        against: place of the leader that it was tested against: its own, or where it leads a group or
            stands beside one that does, that of the group above. None for the first, which is not tested.
        p: of that test; None for the first.
        adjusted: the same by Holm's correction over all these tests.
        settled: whether Holm's correction over these tests rejects just those that begin a group. If not, it
            rejects more, and what it rejects beyond is left in its group.
        draws: random changes of sign of tests that are not exact.
        tests: p-values of all pairs that were looked at, to be handed to the next call.
    """

    group: tuple[int, ...]
    leader: tuple[int, ...]
    against: tuple[int | None, ...]
    p: tuple[float | None, ...]
    adjusted: tuple[float | None, ...]
    settled: bool
    draws: int
    tests: Mapping[str, float]


@dataclass(frozen=True)
class BoardGroups:
    """The rank groups of a board's entries.

    Args:
        submissions: ids of the entries that have a group, in the board's order.
        groups: theirs, or None where no entry has one.
    """

    submissions: tuple[str, ...] = ()
    groups: Groups | None = None

    @property
    def by_submission(self) -> dict[str, int]:
        """The group by submission id; entries outside the groups are left out."""
        return dict(zip(self.submissions, self.groups.group, strict=True)) if self.groups else {}


def board_groups(
    board: Board,
    entries: Sequence[Entry],
    values_of: ValuesOf,
    *,
    known: Mapping[str, float] | None = None,
) -> BoardGroups:
    """The rank groups of a board: `leader_groups` over the values per query of what ranks.

    Where the mean of several metrics ranks, a query's value is the mean of its values by these. Baselines and
    entries without a rank (oracles, published rows, numbers that do not compare) stand outside: they get no
    group, and nobody's group depends on them. So does an entry without values of every term, or whose values
    have another mean than its line shows. A board that a median or a count ranks, which is not a mean over
    queries, has no groups.

    Args:
        board: says what ranks.
        entries: from `standings`, best first.
        values_of: gives a submission's values by metric, each of shape (n,), in the benchmark's order of
            queries.
        known: `Groups.tests` of an earlier call, so that only new pairs are tested.

    Raises:
        InputError: two entries have values of different numbers of queries.
    """
    found: dict[str, FloatArray] = {}
    for entry in entries:
        if entry.rank is None or entry.submission.baseline:
            continue
        values = _ranking_values(board, values_of(entry.submission.id))
        if values is not None and math.isclose(
            exact_mean(values), entry.value, rel_tol=_EQUAL, abs_tol=_EQUAL
        ):
            found[entry.submission.id] = values
    if not found:
        return BoardGroups()
    return BoardGroups(tuple(found), leader_groups(list(found.values()), key=board.benchmark, known=known))


def leader_groups(
    values: Sequence[FloatArray],
    *,
    alpha: float = ALPHA,
    draws: int | None = None,
    seed: int = SEED,
    key: str = "",
    known: Mapping[str, float] | None = None,
) -> Groups:
    """Groups of methods by tests against the leader of the group, with Holm's correction over n - 1 tests.

    The walk W(k), for a whole number k: the first method leads group 1. Down the order, with p_j the p-value
    of method j against the leader of the group above it, j leads the next group if k * p_j <= alpha, else it
    joins. Every method but the first has one test, so that there are m = n - 1. Whom j is tested against
    depends on k, and Holm's k on all p_j; so the two are brought to agree:

        k_0 = m;  S_i: methods that begin a group in W(k_i);  H_i: those that Holm rejects in W(k_i)'s tests
        H_i = S_i: the groups are those of W(k_i), and settled
        H_i > S_i: k_(i+1) = m - |H_i| + 1, the factor by which Holm accepted the last of H_i
        H_i < S_i: the groups are those of W(k_(i-1)), not settled

    One of the three holds, since H_i and S_i both are all methods with a p_j below some bound. The first walk
    cannot end by the third: what m * p_j <= alpha begins, Holm rejects. In the second a p_j of H_i lies above
    alpha / k_i and not above alpha / (m - |H_i| + 1), so that k falls and there are m walks at most. Hence
    the groups are always such that Holm rejects, over the tests shown, each method that begins a group; and
    where they are settled, no other. Where they are not, the tests may have no such groups at all.

    Methods of equal mean share a group, whatever their order: they take one step of the walk together, and
    lead together, with the largest p-value of their pairs in place of one, which still counts once a method.

    (Paired randomisation test: Smucker, Allan and Carterette, CIKM 2007, by `cir_metrics.significance`; Holm,
    Scandinavian Journal of Statistics 1979. The walk is ours.)

    Args:
        values: of each method one value per query, shape (n,), the methods in order of their means.
        alpha: level of significance, above 0 and below 1.
        draws: random changes of sign of tests that are not exact, at least m / alpha - 1, so that one may
            pass Holm's first step; default: 10,000, doubled until that is so.
        seed: 0 or more.
        key: see `cir_metrics.resampling.generator`.
        known: `Groups.tests` of an earlier call. Pairs in it are not tested again, and the result is the same
            with it as without.

    Returns:
        The groups, and the tests behind them.

    Raises:
        InputError: no methods, values of different lengths or not finite, methods that do not stand in the
            order of their means, alpha or draws out of range.

    Example:
        >>> best, same, worse = np.ones(40), np.arange(40) > 0, np.arange(40) > 19
        >>> found = leader_groups([best, same, worse])
        >>> found.group, found.p
        ((1, 1, 2), (None, 1.0, 1.9073486328125e-06))
    """
    matrix = _matrix(values)
    m = matrix.shape[1] - 1
    draws = _checked_draws(draws, m, alpha)
    steps = _steps(exact_means(matrix))
    pairs = _Pairs(matrix, draws, seed, key, known or {})
    walk = _Walk(steps, pairs, m, alpha)
    while not walk.settled:
        looser = _Walk(steps, pairs, m - len(walk.rejected) + 1, alpha)
        if len(looser.rejected) < len(looser.begins):
            break
        walk = looser
    return Groups(
        group=tuple(walk.group),
        leader=tuple(walk.leader),
        against=(None, *walk.against[1:]),
        p=(None, *walk.p[1:]),
        adjusted=(None, *walk.adjusted),
        settled=walk.settled,
        draws=draws,
        tests=pairs.found,
    )


class _Walk:
    """One way down the order.

    Args:
        steps: the methods, best first.
        pairs: gives the p-value of two steps.
        factor: what a p-value is multiplied by.
        alpha: what the product is compared with.
    """

    def __init__(self, steps: Sequence[Step], pairs: _Pairs, factor: int, alpha: float) -> None:
        """Go down."""
        leading, number = steps[0], 1
        self.group: list[int] = []
        self.leader: list[int] = []
        self.against: list[int] = []
        self.p: list[float] = []
        for place, step in enumerate(steps):
            above = leading
            p = pairs.p(leading, step, steps[place + 1 :]) if place else 1.0
            if place and factor * p <= alpha:
                leading, number = step, number + 1
            self.group += [number] * len(step)
            self.leader += [leading[0]] * len(step)
            self.against += [above[0]] * len(step)
            self.p += [p] * len(step)
        self.adjusted: list[float] = holm(self.p[1:]).tolist() if len(self.p) > 1 else []
        self.rejected = [place for place, p in enumerate(self.adjusted, start=1) if p <= alpha]
        self.begins = [place for place, above in enumerate(self.against) if self.leader[place] != above]

    @property
    def settled(self) -> bool:
        """Whether Holm rejects just those that begin a group."""
        return self.rejected == self.begins


class _Pairs:
    """P-values of pairs: those that are known, and tests of the others.

    Args:
        matrix: one value per query and method, shape (n, methods).
        draws: as in `leader_groups`, and so are the others.
    """

    def __init__(
        self, matrix: FloatArray, draws: int, seed: int, key: str, known: Mapping[str, float]
    ) -> None:
        """Name every method by what its tests depend on."""
        self.found: dict[str, float] = {}
        self._known = known
        self._tests = PairedTests(matrix, draws=draws, seed=seed, key=key)
        how = f"{_VERSION} {draws} {seed} {key}".encode()
        # Zero has two signs, and no method differs from another by them.
        rows = np.ascontiguousarray(matrix.T + 0.0, dtype="<f8")
        self._digests = [hashlib.sha256(how + b"\0" + row.tobytes()).digest() for row in rows]

    def p(self, leading: Step, step: Step, later: Sequence[Step]) -> float:
        """The largest p-value of a method of one step and one of the other.

        Args:
            leading: the step above.
            step: that below.
            later: those that may be tested next.
        """
        return max(self._p(*pair, self._next(leading, later)) for pair in itertools.product(leading, step))

    def _p(self, one: int, other: int, ahead: Iterator[int]) -> float:
        name = self._name(one, other)
        if name not in self.found:
            p = self._known.get(name)
            self.found[name] = self._tests.p(one, other, ahead) if p is None else p
        return self.found[name]

    def _next(self, leading: Step, later: Sequence[Step]) -> Iterator[int]:
        """The methods right behind whose tests are not known either."""
        for step in later:
            names = [self._name(*pair) for pair in itertools.product(leading, step)]
            if all(name in self._known or name in self.found for name in names):
                return
            yield from step

    def _name(self, one: int, other: int) -> str:
        return hashlib.sha256(b"".join(sorted((self._digests[one], self._digests[other])))).hexdigest()


def _ranking_values(board: Board, values: Mapping[str, FloatArray] | None) -> FloatArray | None:
    """What each query adds to the number that ranks, or None where a term has no values."""
    if values is None or any(term not in values for term in board.primary_terms):
        return None
    return exact_means([values[term] for term in board.primary_terms])


def _matrix(values: Sequence[FloatArray]) -> FloatArray:
    sizes = [np.shape(each) for each in values]
    if not sizes or len(sizes[0]) != 1 or set(sizes) != {sizes[0]}:
        raise InputError(
            f"values have the shapes {sorted(set(sizes))}. "
            "Fix: pass one method or more, each with one value for each of the same queries."
        )
    return check_values(np.stack(values, axis=1), "values")


def _checked_draws(draws: int | None, m: int, alpha: float) -> int:
    check_alpha(alpha)
    if draws is None:
        draws = DRAWS
        while m > alpha * (1 + draws):
            draws *= 2
    elif m > alpha * (1 + check_draws(draws)):
        raise InputError(
            f"draws={draws}; at alpha={alpha}, no sampled p-value is small enough for the first "
            f"of {m} tests. Fix: use {math.ceil(m / alpha)} or more."
        )
    return draws


def _steps(means: FloatArray) -> list[Step]:
    """Places of methods by their means, those of equal means together.

    Raises:
        InputError: the means neither rise nor fall.
    """
    steps, signs = [[0]], set()
    for place, (above, mean) in enumerate(itertools.pairwise(means.tolist()), start=1):
        if math.isclose(above, mean, rel_tol=_EQUAL, abs_tol=_EQUAL):
            steps[-1].append(place)
            continue
        steps.append([place])
        signs.add(above > mean)
        if len(signs) > 1:
            raise InputError(
                f"values[{place}] has the mean {mean}, behind {above}: the methods do not stand in the order "
                "of their means. Fix: sort them, best first."
            )
    return [tuple(step) for step in steps]
