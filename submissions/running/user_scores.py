"""Scores that a user already has, as a rank file: aligned by ids, ranked block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.progress import step_progress
from submissions.errors import MethodError
from submissions.rank_file.model import Method
from submissions.running.answers import Answers
from submissions.running.by_scores import CELLS, ScoreOrder
from submissions.running.user_arrays import check_array, give_back, is_tensor, numbers
from submissions.running.user_ids import (
    Joined,
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
    from submissions.methods.turns import Candidates, Turn
    from submissions.rank_file.model import RankBundle, RankFile

_RANKS = " Higher is better; whole numbers may be ranks, where lower is better: give minus ranks then."


def rank_file_from_scores(
    benchmark: str | Benchmark,
    scores: Any,
    *,
    query_ids: Sequence[str] | None = None,
    image_ids: Sequence[str] | None = None,
    method: str | Method,
    by_position: bool = False,
    k: int | None = None,
) -> RankFile | RankBundle:
    """The rank file of scores that were computed elsewhere.

    Rows and columns are joined to the benchmark by their ids. The reference is taken out where the protocol
    removes it, a query's second list (CIRR's six) is ranked by the same scores, rankings are cut to what the
    board uses, and ties are ordered by `cir_metrics.ties`.

    Args:
        benchmark: an id or a benchmark; or a suite's id, and then scores and ids are given by member, as in
            `{"dress": ..., "shirt": ..., "toptee": ...}`.
        scores: shape (queries, images), float16 to float64, higher is better; a numpy array, a memory map, a
            torch tensor, or an iterable of such blocks of rows, one after the other; or a data frame, whose
            index and columns are the ids. Infinities are allowed. A memory map is read block by block and not
            kept in memory.
        query_ids: id of each row, in any order; of a session's turn `SESSION#TURN`, turns from 1. Rows that a
            sampler has repeated are ranked alike and count once, with a warning.
        image_ids: id of each column, in any order. Where the publisher's list of the gallery is not available
            (CIRCO without COCO's list), these are the gallery, and the signature of a score says so.
        method: its name, or a `Method` with what else is to be known.
        by_position: whether ids that are not given are the benchmark's own, in its order.
        k: images a ranking, 1 to 1,000; default: what the board's metrics use.

    Returns:
        A rank file; of a suite a bundle of one a member.

    Raises:
        UnknownNameError: no benchmark has that id.
        MethodError: ids are missing, unknown, or given twice; a shape or type is wrong; a score is NaN.
        SourceError: the benchmark's data is not available.

    Example:
        >>> import cir_datasets
        >>> shapes = cir_datasets.load("shapes/val")
        >>> made = rank_file_from_scores(
        ...     shapes, np.zeros((300, 3940)), query_ids=shapes.query_ids, image_ids=shapes.gallery,
        ...     method="Nothing")
        >>> len(made.rankings), len(made.rankings[shapes.query_ids[0]])
        (300, 50)
    """
    given = {"scores": scores, "query_ids": query_ids, "image_ids": image_ids}
    settings = RankSettings(method, k, by_position)
    return ranked_parts(benchmark, parts_of(benchmark, given, Names(), by_member), ranked_by_scores, settings)


def ranked_by_scores(
    benchmark: Benchmark, given: Mapping[str, Any], names: Names, settings: RankSettings
) -> RankFile:
    """What `rank_file_from_scores` does for one benchmark.

    Args:
        benchmark: what is ranked.
        given: `scores`, and `query_ids` and `image_ids` where they were given.
        names: what messages call these.
        settings: how it is ranked.
    """
    given = unframed(given, "scores", {"query_ids": "index", "image_ids": "columns"}, names)
    task = joined(benchmark, given, names, settings)
    scores = given.get("scores")
    answers, start = Answers(task.benchmark), 0
    declared = isinstance(settings.method, Method) and settings.method.reference
    masked = task.method.reference == "kept" and not declared
    with step_progress(f"ranking {task.benchmark.id}", len(task.keys)) as advance:
        for block in _blocks(scores, task):
            turns, rows = task.asked(task.keys[start : start + len(block)])
            masked = masked and _masks_references(block, turns, task.gallery)
            answers.take(ScoreOrder(turns, block, task.gallery), rows, task.depth)
            start += len(block)
            advance(len(block))
    if masked:
        task = replace(task, method=task.method.model_copy(update={"reference": ""}))
    return task.rank_file(answers)


def _masks_references(block: NDArray[np.floating[Any]], turns: Sequence[Turn], gallery: Candidates) -> bool:
    """Whether no image scores lower than its row's reference, as where a caller has put -inf there.

    Then the reference was taken out before, and nobody but the caller can say what that was for.
    """
    columns = np.array([gallery.place.get(turn.reference or "", -1) for turn in turns], dtype=np.int64)
    rows = np.flatnonzero(columns >= 0)
    return bool((block[rows, columns[rows]] <= block[rows].min(axis=1)).all())


def _blocks(scores: Any, task: Joined) -> Iterator[NDArray[np.floating[Any]]]:
    """Checked blocks of rows, each small enough to be worked on."""
    keys, images, called = task.keys, task.gallery.ids, task.names.of("scores")
    whole = isinstance(scores, np.ndarray) or is_tensor(scores)
    if isinstance(scores, str | bytes | dict) or not (whole or isinstance(scores, Iterable)):
        check_array(scores, called, "(queries, images), or an iterable of such blocks")
    shape, start = (len(keys), len(images)), 0
    there = f"there are {shape[0]:,} query ids and {shape[1]:,} image ids"
    step = max(1, CELLS // shape[1])
    for number, given in enumerate([scores] if whole else scores):
        name = called if whole else f"block {number} of {called}"
        check_array(given, name, "(queries, images)")
        if len(given.shape) != 2 or given.shape[1] != shape[1] or start + given.shape[0] > shape[0]:
            turned = tuple(given.shape) == shape[::-1]
            fix = f"give shape (queries, {shape[1]}), a row for each query id, in their order"
            behind = f" behind {start:,} rows" if start else ""
            raise MethodError(
                f"{name}: shape {tuple(given.shape)}{behind}; {there}. "
                f"Fix: {'transpose it (.T)' if turned else fix}."
            )
        for first in range(0, given.shape[0], step):
            block = numbers(given[first : first + step], name, "scores", _RANKS)
            if np.isnan(block.max()):
                row, column = (int(each) for each in np.argwhere(np.isnan(block))[0])
                raise MethodError(
                    f"{name}[{first + row}, {column}] is NaN: query {keys[start + first + row]!r}, image "
                    f"{images[column]!r}. Fix: find where it arose; -inf puts an image last."
                )
            yield block
            give_back(given)
        start += given.shape[0]
    if start < shape[0]:
        raise MethodError(
            f"{called} end after {start:,} rows; query {keys[start]!r} has none, where {there}. "
            "Fix: give a row for each query id."
        )
