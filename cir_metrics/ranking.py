"""From scores to ranks and rankings: with `cir_metrics.gallery`, the only module that orders images by score.

Ranks are 1-based and ties count against the target: any other image with the same score stands before it, so
that constant scores get nothing and the order of the gallery never matters. Rankings need some order among
ties; a hash of query and image gives it (`cir_metrics.ties`), so that neither ids nor places in a gallery are
worth anything, and a method that knows nothing scores what chance does. `cir_metrics.gallery` does the same
straight from embeddings, where the scores of all images would not fit in memory, or were rounded differently
in different columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.errors import InputError
from cir_metrics.ids import check_ids
from cir_metrics.sums import IntArray, check_array, check_cutoff
from cir_metrics.ties import Ties, check_query_ids, tie_keys

Scores = NDArray[Any]
RowsT = TypeVar("RowsT", bound=IntArray | list[IntArray])
"""An array of as many for each query, or a list of an array for each."""


def target_ranks(scores: ArrayLike, targets: RowsT, *, excluded: ArrayLike | None = None) -> RowsT:
    """Rank of each target among the gallery, ties counted against it.

    rank = 1 + |{other ranked images whose score >= the target's}|

    A query's other targets are ranked like any other image.

    Args:
        scores: shape (n_queries, n_gallery), higher is better; from one matrix, so that a target's score and
            its rivals' were computed alike. Infinities are allowed, NaN is not.
        targets: column of the target of each query, shape (n_queries,); or (n_queries, n_targets); or, where
            their number differs, a list of n_queries integer arrays.
        excluded: column that is not ranked in each query (the reference image, where the protocol removes
            it), shape (n_queries,), -1 for none.

    Returns:
        int64 ranks from 1 to the number of ranked images, in the form of `targets`.

    Raises:
        InputError: NaN in scores, wrong shapes, a column outside the gallery, a query without target, a
            target given twice or excluded.

    Example:
        >>> target_ranks([[0.9, 0.5, 0.5]], np.array([1]))
        array([3])
        >>> target_ranks([[0.9, 0.5, 0.5]], np.array([1]), excluded=[0])
        array([2])
    """
    matrix = _check_scores(scores)
    wanted = check_targets(targets, matrix.shape)
    dropped = check_excluded(excluded, matrix.shape, wanted)
    own = matrix[wanted.owners, wanted.columns]
    return wanted.shaped(_count_at_least(matrix, wanted.owners, own, dropped))


def best_target_ranks(
    scores: ArrayLike, targets: IntArray | list[IntArray], *, excluded: ArrayLike | None = None
) -> IntArray:
    """Rank of the best target of each query, ties with images that are not targets counted against it.

    best rank = 1 + |{ranked images that are not targets, whose score >= the best target's}|

    TargetColumns that tie with each other do not stand in each other's way: one of them comes first.

    Args:
        scores: as for `target_ranks`.
        targets: as for `target_ranks`.
        excluded: as for `target_ranks`.

    Returns:
        int64 ranks, shape (n_queries,).

    Raises:
        InputError: as for `target_ranks`.

    Example:
        >>> best_target_ranks([[0.9, 0.9, 0.1]], np.array([[0, 1]]))
        array([1])
    """
    matrix = _check_scores(scores)
    wanted = check_targets(targets, matrix.shape)
    dropped = check_excluded(excluded, matrix.shape, wanted)
    best, level = wanted.best(matrix[wanted.owners, wanted.columns])
    return _count_at_least(matrix, np.arange(len(matrix)), best, dropped) + 1 - level


def top_k(
    scores: ArrayLike,
    gallery_ids: Sequence[str],
    k: int,
    *,
    query_ids: Sequence[str] | None = None,
    excluded: ArrayLike | None = None,
) -> list[list[str]]:
    """The k best images of each query, best first; ties are ordered by `tie_keys`.

    Args:
        scores: shape (n_queries, n_gallery), higher is better; no NaN.
        gallery_ids: id of each column, distinct.
        k: images a query, 1 or more; all that are ranked where there are fewer.
        query_ids: id of each row; its ties depend on it. None: the rows' numbers, from 0.
        excluded: column that is not ranked in each query, shape (n_queries,), -1 for none.

    Returns:
        One list of ids a query, the same whatever the order of the gallery.

    Raises:
        InputError: NaN in scores, wrong shapes, an id given twice, k < 1, a column outside the gallery.

    Example:
        >>> top_k([[0.5, 0.9, 0.5]], ["b", "c", "a"], k=2, query_ids=["q1"])
        [['c', 'a']]
        >>> top_k([[0.5, 0.9, 0.5]], ["b", "c", "a"], k=2, query_ids=["q2"])
        [['c', 'b']]
    """
    matrix = _check_scores(scores)
    k = check_cutoff(k)
    ids = check_ids(gallery_ids, "gallery_ids", what="gallery")
    if len(ids) != matrix.shape[1]:
        raise InputError(
            f"{len(ids)} gallery ids but {matrix.shape[1]} columns of scores. Fix: name each column."
        )
    queries = check_query_ids(query_ids, len(matrix))
    dropped = check_excluded(excluded, matrix.shape, None)
    ties, columns = Ties(ids), np.arange(len(ids))
    rankings = []
    for row, drop, query in zip(matrix, dropped.tolist(), queries, strict=True):
        ranked = columns if drop < 0 else np.delete(columns, drop)
        rankings.append([ids[place] for place in ties.best(ranked, row[ranked], k, query).tolist()])
    return rankings


def best_of(scores: Mapping[str, float], k: int, query_id: str) -> list[str]:
    """The k best of the images that one query has scores for, best first; ties are ordered by `tie_keys`.

    `top_k` takes a score for every image of the gallery; this one takes those of a few, such as the images
    that some rankings list.

    Args:
        scores: score by image id, higher is better; floats but NaN, or whole numbers of any size.
        k: images, 1 or more; all where there are fewer.
        query_id: the query's id; its ties depend on it.

    Returns:
        Image ids, the same whatever the order of `scores`.

    Raises:
        InputError: a score is NaN; k < 1.

    Example:
        >>> best_of({"b": 0.5, "c": 0.9, "a": 0.5}, k=2, query_id="q2")
        ['c', 'b']
    """
    k = check_cutoff(k)
    for image, score in scores.items():
        # NaN alone differs from itself.
        if score != score:
            raise InputError(f"the score of {image!r} is NaN, which has no rank. Fix: find where it arose.")
    held = Counter(scores.values())
    tied = [image for image, score in scores.items() if held[score] > 1]
    keys = dict(zip(tied, tie_keys(query_id, tied).tolist(), strict=True))
    return sorted(scores, key=lambda image: (-scores[image], keys.get(image, 0), image))[:k]


def _check_scores(scores: ArrayLike) -> Scores:
    fix = "pass numbers of shape (n_queries, n_gallery)"
    matrix = check_array(scores, "scores", "fiub", fix, dimensions=(2,))
    if matrix.dtype.kind != "f":
        # Whole numbers stay so: as floats, those above 2**53 would tie with their neighbours.
        return matrix.astype(np.int64) if matrix.dtype.kind == "b" else matrix
    # The maximum of anything with a NaN is NaN, and needs no second matrix.
    if np.isnan(matrix.max()):
        row, column = (int(each) for each in np.argwhere(np.isnan(matrix))[0])
        raise InputError(f"scores[{row}, {column}] is NaN, which has no rank. Fix: find where it arose.")
    return matrix


@dataclass(frozen=True, eq=False)
class TargetColumns(Generic[RowsT]):
    """The targets of all queries in one list, query by query.

    Args:
        columns: column of each target, shape (n_targets,).
        owners: query of each target, ascending, shape (n_targets,).
        starts: place of each query's first target, shape (n_queries,).
        form: the targets as they were given.
    """

    columns: IntArray
    owners: IntArray
    starts: IntArray
    form: RowsT

    def shaped(self, ranks: IntArray) -> RowsT:
        """A rank for each target, in the form in which the targets were given."""
        if isinstance(self.form, list):
            return cast(RowsT, np.split(ranks, self.starts[1:]))
        return cast(RowsT, ranks.reshape(np.shape(self.form)))

    def best(self, scores: Scores) -> tuple[Scores, IntArray]:
        """The best score of each query's targets, and how many of them have it.

        Args:
            scores: score of each target, shape (n_targets,).
        """
        best = np.maximum.reduceat(scores, self.starts)
        return best, np.add.reduceat(scores == best[self.owners], self.starts, dtype=np.int64)


def check_targets(targets: RowsT, shape: tuple[int, ...]) -> TargetColumns[RowsT]:
    """The targets of each query.

    Args:
        targets: as for `target_ranks`.
        shape: (n_queries, n_gallery).

    Raises:
        InputError: not one entry a query; an entry that is empty, no integers, outside the gallery or holds a
            column twice.

    Example:
        >>> check_targets([np.array([4]), np.array([2, 0])], (2, 5)).owners
        array([0, 1, 1])
    """
    n_queries, n_gallery = shape
    if isinstance(targets, list):
        ragged = [np.atleast_1d(each) for each in targets]
    else:
        array = np.asarray(targets)
        ragged = list(array.reshape(len(array), -1)) if array.ndim in (1, 2) else []
    if len(ragged) != n_queries:
        raise InputError(
            f"targets for {len(ragged)} queries, scores for {n_queries}. Fix: give each its own."
        )
    for query, each in enumerate(ragged):
        if each.size == 0 or each.ndim != 1 or each.dtype.kind not in "iu":
            raise InputError(f"targets[{query}] is {each.tolist()!r}. Fix: give one column number or more.")
    counts = np.fromiter((each.size for each in ragged), np.int64, n_queries)
    columns = np.concatenate(ragged, dtype=np.int64, casting="unsafe")
    owners = np.repeat(np.arange(n_queries), counts)
    outside = np.flatnonzero((columns < 0) | (columns >= n_gallery))
    if outside.size:
        wrong = columns[outside[0]]
        raise InputError(
            f"targets[{owners[outside[0]]}] holds {wrong}; columns are 0 to {n_gallery - 1}. Fix: correct it."
        )
    places = np.sort(owners * n_gallery + columns)
    twice = places[1:][places[1:] == places[:-1]]
    if twice.size:
        query = int(twice[0]) // n_gallery
        raise InputError(
            f"targets[{query}] is {ragged[query].tolist()!r}, which names a column twice. Fix: name it once."
        )
    return TargetColumns(columns, owners, np.cumsum(counts) - counts, targets)


def check_excluded(
    excluded: ArrayLike | None, shape: tuple[int, ...], targets: TargetColumns[Any] | None
) -> IntArray:
    """The column that each query leaves out, -1 for none.

    Args:
        excluded: as for `target_ranks`.
        shape: (n_queries, n_gallery).
        targets: none of which may be left out; None where there are none.

    Raises:
        InputError: not one integer a query, a column outside the gallery, a target.

    Example:
        >>> check_excluded(None, (2, 5), None)
        array([-1, -1])
    """
    n_queries, n_gallery = shape
    if excluded is None:
        return np.full(n_queries, -1, dtype=np.int64)
    fix = "give one column a query, -1 for none"
    dropped = check_array(excluded, "excluded", "iu", fix, rows=n_queries)
    outside = np.flatnonzero((dropped < -1) | (dropped >= n_gallery))
    if outside.size:
        query = int(outside[0])
        raise InputError(
            f"excluded[{query}] is {dropped[query]}; columns are 0 to {n_gallery - 1}. Fix: use -1 for none."
        )
    if targets is not None:
        clash = targets.owners[targets.columns == dropped[targets.owners]]
        if clash.size:
            raise InputError(
                f"excluded[{clash[0]}] is {dropped[clash[0]]}, a target of that query. Fix: exclude another."
            )
    return dropped


def _count_at_least(matrix: Scores, queries: IntArray, own: Scores, dropped: IntArray) -> IntArray:
    """How many ranked scores of a query are at least `own`, that score itself among them."""
    pairs = zip(queries.tolist(), own, strict=True)
    counts = np.array([np.count_nonzero(matrix[query] >= score) for query, score in pairs], dtype=np.int64)
    left_out = dropped[queries]
    counts -= (matrix[queries, left_out] >= own) & (left_out >= 0)
    return counts
