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
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cir_metrics.coding import IntArray
from cir_metrics.errors import InputError
from cir_metrics.inputs import as_array, check_cutoff, check_ids
from cir_metrics.ties import Ties, check_query_ids, tie_keys

Scores = NDArray[Any]

_COMPARED = 2**20
"""Comparisons that are held at once, a byte each."""


@overload
def target_ranks(
    scores: ArrayLike, targets: list[IntArray], *, excluded: ArrayLike | None = None
) -> list[IntArray]: ...
@overload
def target_ranks(scores: ArrayLike, targets: IntArray, *, excluded: ArrayLike | None = None) -> IntArray: ...
def target_ranks(
    scores: ArrayLike, targets: IntArray | list[IntArray], *, excluded: ArrayLike | None = None
) -> IntArray | list[IntArray]:
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
    columns, counts = pad_targets(targets, matrix.shape)
    dropped = check_excluded(excluded, matrix.shape, columns)
    own = np.take_along_axis(matrix, np.maximum(columns, 0), axis=1)
    ranks = np.empty(columns.shape, dtype=np.int64)
    for t in range(columns.shape[1]):
        # The target itself is counted too, which is the 1 of the definition.
        ranks[:, t] = _count_at_least(matrix, own[:, t])
    ranks -= _beaten_by_excluded(matrix, own, dropped)
    return shape_as(ranks, targets, counts)


def best_target_ranks(
    scores: ArrayLike, targets: IntArray | list[IntArray], *, excluded: ArrayLike | None = None
) -> IntArray:
    """Rank of the best target of each query, ties with images that are not targets counted against it.

    best rank = 1 + |{ranked images that are not targets, whose score >= the best target's}|

    Targets that tie with each other do not stand in each other's way: one of them comes first.

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
    columns, _ = pad_targets(targets, matrix.shape)
    dropped = check_excluded(excluded, matrix.shape, columns)
    own = np.take_along_axis(matrix, np.maximum(columns, 0), axis=1)
    lowest = -np.inf if own.dtype.kind == "f" else np.iinfo(own.dtype).min
    best = np.where(columns >= 0, own, own.dtype.type(lowest)).max(axis=1, keepdims=True)
    targets_at_least = np.count_nonzero((own >= best) & (columns >= 0), axis=1)
    ranks: IntArray = 1 + _count_at_least(matrix, best[:, 0]) - targets_at_least
    ranks -= _beaten_by_excluded(matrix, best, dropped)[:, 0]
    return ranks


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
    ties = Ties(ids)
    return [
        [ids[place] for place in _best_places(row, k, drop, ties, query)]
        for row, drop, query in zip(matrix, dropped.tolist(), queries, strict=True)
    ]


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


def _best_places(row: Scores, k: int, drop: int, ties: Ties, query_id: str) -> list[int]:
    """Places of the k best of one row without the place `drop`, equal scores by their keys."""
    places = np.arange(len(row)) if drop < 0 else np.delete(np.arange(len(row)), drop)
    values = row[places]
    if k < len(values):
        # The k-th best score: everything above it is in, and of its equals the first by their keys.
        threshold = np.partition(values, len(values) - k)[len(values) - k]
        above, level = np.flatnonzero(values > threshold), np.flatnonzero(values == threshold)
        wanted = k - len(above)
        if wanted < len(level):
            keys = ties.keys([query_id], places[level])
            level = level[np.argpartition(keys, wanted - 1)[:wanted]]
        chosen = np.concatenate([above, level])
        places, values = places[chosen], values[chosen]
    # Highest first: sorted upwards, then turned round. (A minus sign would overflow the smallest integer.)
    order = np.argsort(values, kind="stable")[::-1]
    query = np.zeros(len(order), dtype=np.int64)
    best: list[int] = ties.ordered(places[order], values[order], query, [query_id]).tolist()
    return best


def _check_scores(scores: ArrayLike) -> Scores:
    matrix = as_array(scores, "scores")
    if matrix.dtype.kind not in "fiub" or matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            f"scores have shape {matrix.shape} and type {matrix.dtype}. "
            "Fix: pass numbers of shape (n_queries, n_gallery)."
        )
    if matrix.dtype.kind != "f":
        # Whole numbers stay so: as floats, those above 2**53 would tie with their neighbours.
        return matrix.astype(np.int64) if matrix.dtype.kind == "b" else matrix
    # The maximum of anything with a NaN is NaN, and needs no second matrix.
    if np.isnan(matrix.max()):
        row, column = (int(each) for each in np.argwhere(np.isnan(matrix))[0])
        raise InputError(f"scores[{row}, {column}] is NaN, which has no rank. Fix: find where it arose.")
    return matrix


def pad_targets(targets: IntArray | list[IntArray], shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Target columns as (n_queries, most targets), padded with -1, and how many each query has.

    Args:
        targets: as for `target_ranks`.
        shape: (n_queries, n_gallery).

    Raises:
        InputError: not one entry a query; an entry that is empty, no integers, outside the gallery or holds a
            column twice.

    Example:
        >>> pad_targets([np.array([4]), np.array([2, 0])], (2, 5))
        (array([[ 4, -1],
               [ 2,  0]]), array([1, 2]))
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
    flat = np.concatenate(ragged, dtype=np.int64, casting="unsafe")
    filled = np.arange(counts.max()) < counts[:, None]
    outside = np.flatnonzero((flat < 0) | (flat >= n_gallery))
    if outside.size:
        query = int(np.repeat(np.arange(n_queries), counts)[outside[0]])
        raise InputError(
            f"targets[{query}] holds {flat[outside[0]]}; columns are 0 to {n_gallery - 1}. Fix: correct it."
        )
    columns = np.full(filled.shape, -1, dtype=np.int64)
    columns[filled] = flat
    ordered = np.sort(columns, axis=1)
    twice = np.flatnonzero(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1))
    if twice.size:
        query = int(twice[0])
        raise InputError(
            f"targets[{query}] is {ragged[query].tolist()!r}, which names a column twice. Fix: name it once."
        )
    return columns, counts


def shape_as(
    ranks: IntArray, targets: IntArray | list[IntArray], counts: IntArray
) -> IntArray | list[IntArray]:
    """Padded ranks in the form in which the targets were given.

    Example:
        >>> shape_as(np.array([[3], [1]]), np.array([7, 8]), np.array([1, 1]))
        array([3, 1])
    """
    if isinstance(targets, list):
        return [row[:count] for row, count in zip(ranks, counts, strict=True)]
    return ranks.reshape(np.shape(targets))


def check_excluded(excluded: ArrayLike | None, shape: tuple[int, ...], columns: IntArray | None) -> IntArray:
    """The column that each query leaves out, -1 for none.

    Args:
        excluded: as for `target_ranks`.
        shape: (n_queries, n_gallery).
        columns: padded targets, none of which may be left out; None where there are none.

    Raises:
        InputError: not one integer a query, a column outside the gallery, a target.

    Example:
        >>> check_excluded(None, (2, 5), None)
        array([-1, -1])
    """
    n_queries, n_gallery = shape
    if excluded is None:
        return np.full(n_queries, -1, dtype=np.int64)
    dropped = np.asarray(excluded)
    if dropped.shape != (n_queries,) or dropped.dtype.kind not in "iu":
        raise InputError(
            f"excluded has shape {dropped.shape} and type {dropped.dtype}. "
            "Fix: give one column a query, -1 for none."
        )
    outside = np.flatnonzero((dropped < -1) | (dropped >= n_gallery))
    if outside.size:
        query = int(outside[0])
        raise InputError(
            f"excluded[{query}] is {dropped[query]}; columns are 0 to {n_gallery - 1}. Fix: use -1 for none."
        )
    if columns is not None:
        clash = np.flatnonzero(((columns == dropped[:, None]) & (columns >= 0)).any(axis=1))
        if clash.size:
            query = int(clash[0])
            raise InputError(
                f"excluded[{query}] is {dropped[query]}, a target of that query. Fix: exclude another."
            )
    return dropped.astype(np.int64)


def _count_at_least(matrix: Scores, own: Scores) -> IntArray:
    """How many scores of each row are at least `own`, without a second matrix of that size."""
    rows = max(1, _COMPARED // matrix.shape[1])
    counts = np.empty(len(matrix), dtype=np.int64)
    for start in range(0, len(matrix), rows):
        part = slice(start, start + rows)
        counts[part] = np.count_nonzero(matrix[part] >= own[part, None], axis=1)
    return counts


def _beaten_by_excluded(matrix: Scores, own: Scores, dropped: IntArray) -> IntArray:
    """1 where the excluded column was counted among those that are at least as good, shape of `own`."""
    scores = np.take_along_axis(matrix, np.maximum(dropped, 0)[:, None], axis=1)
    counted: IntArray = ((scores >= own) & (dropped >= 0)[:, None]).astype(np.int64)
    return counted
