"""Embeddings of queries and images that a user already has, as a rank file: exact search, joined by ids."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.progress import step_progress
from submissions.errors import MethodError
from submissions.methods.composing import unit
from submissions.running.answers import Answers
from submissions.running.by_embeddings import VectorOrder
from submissions.running.search import Searcher
from submissions.running.user_arrays import check_array, give_back, numbers
from submissions.running.user_ids import (
    Names,
    RankSettings,
    by_member,
    joined,
    parts_of,
    ranked_parts,
    unframed,
)

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.composing import Vectors
    from submissions.rank_file.model import Method, RankBundle, RankFile

_CELLS = 131_072
"""Numbers that are checked and scaled at once: they fit in a processor's cache."""


def rank_file_from_embeddings(
    benchmark: str | Benchmark,
    query_embeddings: Any,
    image_embeddings: Any,
    *,
    query_ids: Sequence[str] | None = None,
    image_ids: Sequence[str] | None = None,
    method: str | Method,
    normalise: bool = True,
    by_position: bool = False,
    k: int | None = None,
) -> RankFile | RankBundle:
    """The rank file of embeddings that were computed elsewhere: each query's nearest images, by exact search.

    score(q, g) = q . g, of rows of length 1 where they are normalised (the cosine). Rows are joined to the
    benchmark by their ids; references, second rankings, depth and ties are as in `rank_file_from_scores`.

    Args:
        benchmark: an id or a benchmark; or a suite's id, and then embeddings and ids are given by member, as
            in `{"dress": ..., "shirt": ..., "toptee": ...}`.
        query_embeddings: shape (queries, dimensions), float16 to float64, finite, of composed queries; a
            numpy array, a memory map, a torch tensor, or a data frame, whose index holds the ids. They are
            compared as float32, as `cir run` does it.
        image_embeddings: shape (images, dimensions), likewise, of the gallery.
        query_ids: id of each row, in any order; of a session's turn `SESSION#TURN`, turns from 1.
        image_ids: id of each image's row, in any order; see `rank_file_from_scores`.
        method: its name, or a `Method` with what else is to be known.
        normalise: whether rows are brought to length 1 first, so that the score is the cosine; False ranks by
            the dot product of what is given.
        by_position: whether ids that are not given are the benchmark's own, in its order.
        k: images a ranking, 1 to 1,000; default: what the board's metrics use.

    Returns:
        A rank file; of a suite a bundle of one a member.

    Raises:
        UnknownNameError: no benchmark has that id.
        MethodError: ids are missing, unknown, or given twice; a shape or type is wrong; a row is not finite,
            or holds nothing but zeros.
        SourceError: the benchmark's data is not available.

    Example:
        >>> import cir_datasets
        >>> shapes = cir_datasets.load("shapes/val")
        >>> made = rank_file_from_embeddings(
        ...     shapes, np.ones((300, 4)), np.ones((3940, 4)), query_ids=shapes.query_ids,
        ...     image_ids=shapes.gallery, method="All the same")
        >>> len(made.rankings), len(made.rankings[shapes.query_ids[0]])
        (300, 50)
    """
    given = {
        "query_embeddings": query_embeddings,
        "image_embeddings": image_embeddings,
        "query_ids": query_ids,
        "image_ids": image_ids,
    }
    settings = RankSettings(method, k, by_position, normalise)
    return ranked_parts(
        benchmark, parts_of(benchmark, given, Names(), by_member), ranked_by_embeddings, settings
    )


def ranked_by_embeddings(
    benchmark: Benchmark, given: Mapping[str, Any], names: Names, settings: RankSettings
) -> RankFile:
    """What `rank_file_from_embeddings` does for one benchmark.

    Args:
        benchmark: what is ranked.
        given: `query_embeddings` and `image_embeddings`, and `query_ids` and `image_ids` where these were
            given.
        names: what messages call these.
        settings: how it is ranked.
    """
    given = unframed(given, "query_embeddings", {"query_ids": "index"}, names)
    given = unframed(given, "image_embeddings", {"image_ids": "index"}, names)
    task = joined(benchmark, given, names, settings)
    vectors = functools.partial(joined_vectors, given, names=names, normalise=settings.normalise)
    queries = vectors("query_embeddings", task.keys, "query")
    images = vectors("image_embeddings", task.gallery.ids, "image")
    if queries.shape[1] != images.shape[1]:
        raise MethodError(
            f"{names.of('query_embeddings')} have {queries.shape[1]:,} dimensions, "
            f"{names.of('image_embeddings')} {images.shape[1]:,}. Fix: give both in the space in which they "
            "are compared."
        )
    turns, rows = task.asked(task.keys)
    answers = Answers(task.benchmark)
    with step_progress(f"ranking {task.benchmark.id}", len(turns)) as advance:
        searcher = Searcher(images, task.gallery.ids)
        answers.take(VectorOrder(turns, queries, searcher, task.gallery, advance), rows, task.depth)
    return task.rank_file(answers)


def joined_vectors(
    given: Mapping[str, Any], argument: str, ids: Sequence[str], of: str, *, names: Names, normalise: bool
) -> Vectors:
    """Checked vectors as float32; a memory map of these stays one where it is not normalised."""
    vectors: Any = given.get(argument)
    called = names.of(argument)
    check_array(vectors, called, f"({of} ids, dimensions)")
    if len(vectors.shape) != 2 or vectors.shape[0] != len(ids) or not vectors.shape[1]:
        turned = len(vectors.shape) == 2 and vectors.shape[1] == len(ids)
        fix = "transpose it (.T)" if turned else f"give a row for each {of} id, in that order"
        raise MethodError(
            f"{called}: shape {tuple(vectors.shape)}; there are {len(ids):,} {of} ids. Fix: {fix}."
        )
    stays = isinstance(vectors, np.ndarray) and vectors.dtype == np.float32 and not normalise
    kept: Vectors = vectors if stays else np.empty(tuple(vectors.shape), dtype=np.float32)
    step = max(1, _CELLS // vectors.shape[1])

    for first in range(0, len(ids), step):
        block = numbers(vectors[first : first + step], called, "embeddings")
        with np.errstate(over="ignore", invalid="ignore"):
            part = unit(block) if normalise else block.astype(np.float32, copy=False)
        _check_rows(block, part, first, ids, f"{called}[{{row}}]", of)
        if not stays:
            kept[first : first + step] = part
            give_back(vectors)
    return kept


def _check_rows(
    block: np.ndarray[Any, Any], part: Vectors, first: int, ids: Sequence[str], place: str, of: str
) -> None:
    """Refuse rows that cannot be compared."""
    if np.isfinite(part).all() and part.any(axis=1).all():
        return
    finite = np.isfinite(block).all(axis=1) & np.isfinite(part).all(axis=1)
    for wrong, said, fix in (
        (~finite, "is not finite as float32", "find where the NaN or the infinity arose"),
        (~block.any(axis=1), "is all zeros", "find why it was never filled"),
        (~part.any(axis=1), "is too small or too large for float32", "scale the embeddings"),
    ):
        if wrong.any():
            row = first + int(np.argmax(wrong))
            raise MethodError(f"{place.format(row=row)} {said}: {of} {ids[row]!r}. Fix: {fix}.")
