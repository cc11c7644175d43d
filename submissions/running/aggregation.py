"""History aggregation: from one vector a turn to one vector for the session so far.

CIRCLED (section 6.3 and equation 9). f_l is the vector that the method composed for turn l, of length 1:

latest     v_l = f_l
average    v_l = (1/l) * sum over l' <= l of f_l'
weighted   v_l = (1/C) * sum over l' <= l of alpha^(l-l') * f_l',  C the sum of the weights
feedback   v_1 = f_1;  v_l = norm(v_(l-1) + a * y+ - b * mean(y-) + c * f_l)

In feedback y+ is the turn's reference, which the user chose from the images shown, and y- are the others
among the best of v_(l-1): Y without y+, all of them where y+ is not in Y (sessions were recorded with another
encoder). A turn without reference chose nothing, hence refused nothing: y+ and y- are left out. f_l stands
for the merged caption's vector of the paper, which is what CIReVL composes.

A turn of which the method reads nothing has a row of zeros and adds nothing: `latest` is then the last turn
that says something, which is what `weighted` tends to for alpha -> 0. Every v is brought to length 1, which
no ranking by cosine depends on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.yaml import package_yaml
from cir_metrics.errors import UnknownNameError
from submissions.errors import MethodError

if TYPE_CHECKING:
    from submissions.methods.composing import Vectors

AGGREGATIONS = ("latest", "average", "weighted", "feedback")
"""Names of the ways in which turns become one vector, in the order of tables."""

Top = Callable[[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]], list[NDArray[np.int64]]]
"""The gallery rows of the images shown for each query, best first; the second argument is the row that each
leaves out, -1 for none, and the third the queries' places among all turns."""


@dataclass(frozen=True)
class Aggregation:
    """A way in which turns become one ranking; make it with `aggregation`.

    Args:
        name: one of `AGGREGATIONS`.
        alpha: what a turn's weight is multiplied by with every later turn; `weighted` alone has one.
    """

    name: str
    alpha: float | None = None

    @property
    def label(self) -> str:
        """A word or two that set it apart from others in a table.

        Example:
            >>> aggregation("weighted").label, aggregation("weighted", alpha=0.5).label
            ('weighted', 'weighted 0.5')
        """
        usual = self.name != "weighted" or self.alpha == aggregation("weighted").alpha
        return self.name if usual else f"{self.name} {self.alpha:g}"

    @property
    def text(self) -> str:
        """What a rank file says of it.

        Example:
            >>> aggregation("weighted").text, aggregation("latest").text
            ('weighted (alpha 0.8)', 'latest')
        """
        if self.name == "weighted":
            return f"weighted (alpha {self.alpha:g})"
        if self.name == "feedback":
            figures = feedback_weights()
            return (
                f"feedback ({figures.selected:g} selected, -{figures.rejected:g} rejected, "
                f"{figures.words:g} words, {figures.shown} shown)"
            )
        return self.name


@dataclass(frozen=True)
class FeedbackWeights:
    """Weights of `feedback`.

    Args:
        selected: of the turn's reference, y+.
        rejected: of the mean of the other images shown, y-; it is taken off.
        words: of the turn's own vector.
        shown: images shown a turn.
    """

    selected: float
    rejected: float
    words: float
    shown: int


def aggregation(name: str, *, alpha: float | None = None) -> Aggregation:
    """The aggregation of a name.

    Args:
        name: one of `AGGREGATIONS`.
        alpha: from 0 (excluded) to 1, for `weighted` alone; default 0.8.

    Raises:
        UnknownNameError: no aggregation has that name.
        MethodError: alpha is out of range, or the aggregation has none.

    Example:
        >>> aggregation("weighted", alpha=0.5)
        Aggregation(name='weighted', alpha=0.5)
    """
    if name not in AGGREGATIONS:
        raise UnknownNameError.of("aggregation", name, AGGREGATIONS)
    if name != "weighted":
        if alpha is not None:
            raise MethodError(f"alpha={alpha}: {name} has no alpha. Fix: leave it out, or use weighted.")
        return Aggregation(name)
    alpha = float(_figures()["weighted"]["alpha"]) if alpha is None else alpha
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha <= 1:
        raise MethodError(f"alpha={alpha!r}; it is more than 0 and at most 1. Fix: choose it in that range.")
    return Aggregation(name, alpha)


@functools.cache
def feedback_weights() -> FeedbackWeights:
    """The weights of CIRCLED's feedback update.

    Example:
        >>> feedback_weights()
        FeedbackWeights(selected=0.08, rejected=0.29, words=0.44, shown=10)
    """
    return FeedbackWeights(**_figures()["feedback"])


def aggregate(how: Aggregation, vectors: Vectors, turns: Sequence[int]) -> Vectors:
    """A vector a turn for the session up to it, by latest, average or weighted.

    Args:
        how: any aggregation but feedback, which searches the gallery.
        vectors: what the method composed a turn, session after session, shape (sum of turns, dimensions).
        turns: number of turns of each session.

    Returns:
        float32, same shape, rows of length 1, or of zeros where nothing was said so far.

    Raises:
        MethodError: the aggregation is feedback.

    Example:
        >>> f = np.array([[1, 0], [0, 1]], dtype=np.float32)
        >>> aggregate(aggregation("average"), f, [2]).round(3).tolist()
        [[1.0, 0.0], [0.7070000171661377, 0.7070000171661377]]
    """
    from submissions.methods.composing import unit

    if how.name == "feedback":
        raise MethodError("feedback searches the gallery at every turn. Fix: call aggregate_feedback.")
    decay = {"latest": 0.0, "average": 1.0}.get(how.name, how.alpha)
    # A sum that is not divided by its weights has the same direction.
    summed = vectors.astype(np.float64)
    says: NDArray[np.bool_] = np.any(vectors != 0, axis=1)
    for row, is_first in enumerate(_firsts(turns)):
        if not is_first:
            if how.name == "latest":
                summed[row] = summed[row] if says[row] else summed[row - 1]
            else:
                summed[row] += decay * summed[row - 1]
    return unit(summed)


def aggregate_feedback(
    vectors: Vectors,
    turns: Sequence[int],
    references: Vectors,
    rows: NDArray[np.int64],
    gallery: Vectors,
    top: Top,
    *,
    removed: bool = False,
    weights: FeedbackWeights | None = None,
) -> Vectors:
    """A vector a turn for the session up to it, by CIRCLED's update (equation 9).

    Args:
        vectors: as for `aggregate`.
        turns: as for `aggregate`.
        references: vector of each turn's reference, same shape; zeros without one.
        rows: gallery row of each turn's reference, -1 where it has none or the gallery lacks it.
        gallery: vectors of the gallery.
        top: which images are shown for a query.
        removed: whether the protocol removes each turn's reference from what is shown.
        weights: default: `feedback_weights()`.

    Returns:
        float32, same shape, rows of length 1, or of zeros where nothing was said so far.
    """
    from submissions.methods.composing import unit

    figures = weights or feedback_weights()
    found = unit(vectors)
    starts = np.concatenate([[0], np.cumsum(turns)])[:-1].astype(np.int64)
    for turn in range(1, max(turns, default=0)):
        here = starts[np.asarray(turns) > turn] + turn
        before = found[here - 1].astype(np.float64)
        chosen = references[here].any(axis=1)
        refused = np.zeros_like(before)
        asked = here[chosen & found[here - 1].any(axis=1)]
        leave_out = rows[asked - 1] if removed else np.full(len(asked), -1, dtype=np.int64)
        place = {row: index for index, row in enumerate(here)}
        for row, shown in zip(asked, top(found[asked - 1], leave_out, asked - 1), strict=True):
            others = shown[shown != rows[row]]
            if len(others):
                refused[place[row]] = gallery[others].astype(np.float64).mean(axis=0)
        found[here] = unit(
            before
            + figures.selected * references[here]
            - figures.rejected * refused
            + figures.words * vectors[here].astype(np.float64)
        )
    return found


def aggregate_scores(how: Aggregation, scores: NDArray[np.float64], turns: Sequence[int]) -> None:
    """Replace each turn's scores by those of the session so far, in place: `aggregate` for scores.

    Args:
        how: any aggregation but feedback.
        scores: shape (sum of turns, images), session after session.
        turns: number of turns of each session.

    Raises:
        MethodError: the aggregation is feedback, which needs vectors.
    """
    if how.name == "feedback":
        raise MethodError(
            "feedback adds vectors, and a method without weights has none. "
            "Fix: use latest, average or weighted, or another --encoder."
        )
    if how.name == "latest":
        return
    decay = 1.0 if how.alpha is None else how.alpha
    total = 0.0
    for row, is_first in enumerate(_firsts(turns)):
        total = 1.0 if is_first else 1.0 + decay * total
        if not is_first:
            # The mean so far, so that scores keep their scale.
            scores[row] += (scores[row - 1] - scores[row]) * (1.0 - 1.0 / total)


def _firsts(turns: Sequence[int]) -> list[bool]:
    """Whether each turn is its session's first."""
    return [turn == 0 for count in turns for turn in range(count)]


def _figures() -> Any:
    return package_yaml("submissions", "running/aggregation.yaml")
