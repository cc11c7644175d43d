"""From a method's scores to a rank file: turns, subsets and removed references, for all methods alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.progress import step_progress
from cir_metrics.ranking import top_k
from submissions.depth import MAX_DEPTH, SUBSET_DEPTH, board_depth, needs_subset
from submissions.errors import MethodError
from submissions.methods import Scorer, scorer
from submissions.methods.asking import Ask, Gallery, asks_of, gallery_of
from submissions.rank_file import RankFile

if TYPE_CHECKING:
    from cir_datasets.benchmark import Benchmark

_CELLS = 8_000_000
"""Scores held at once."""


def make_rank_file(benchmark: str | Benchmark, method: str, *, k: int | None = None) -> RankFile:
    """Rank a benchmark by a method that needs no weights.

    Args:
        benchmark: an id or a benchmark.
        method: a name of `method_names()`.
        k: images a ranking, from 1 to 1,000; default: what the board's metrics use. Where the gallery holds
            fewer, all of them are ranked.

    Returns:
        A valid rank file; the same benchmark, method and k give the same bytes everywhere.

    Raises:
        UnknownNameError: no benchmark or method has that name.
        MethodError: the method cannot rank this benchmark, or k is out of range.
        SourceError: the benchmark's data is not at hand.
    """
    ranker = scorer(method)
    if isinstance(benchmark, str):
        import cir_datasets

        benchmark = cir_datasets.load(benchmark)
    depth = board_depth(benchmark).used if k is None else k
    if not 1 <= depth <= MAX_DEPTH:
        raise MethodError(
            f"k={depth}; a ranking holds 1 to {MAX_DEPTH:,} images. Fix: choose k in that range."
        )
    gallery = gallery_of(benchmark)
    rankings: dict[str, list[Any]] = {}
    subsets: dict[str, list[str]] = {}
    with step_progress(f"{method}: ranking {benchmark.id}", len(benchmark)) as advance:
        for rows, asks, scores in _scored(benchmark, ranker, gallery):
            ranked = top_k(scores, gallery.ids, depth, excluded=_excluded(asks, gallery))
            start = 0
            for row in rows:
                if benchmark.multi_turn:
                    rankings[row["session_id"]] = ranked[start : start + row["num_turns"]]
                    start += row["num_turns"]
                    continue
                rankings[row["query_id"]] = ranked[start]
                if needs_subset(benchmark):
                    subsets[row["query_id"]] = _rank_subset(row, scores[start], gallery)
                start += 1
            advance(len(rows))
    return RankFile(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=_described(ranker, benchmark),
        rankings=rankings,
        subset_rankings=subsets if needs_subset(benchmark) else None,
    )


def _scored(
    benchmark: Benchmark, ranker: Scorer, gallery: Gallery
) -> Iterator[tuple[list[dict[str, Any]], list[Ask], NDArray[np.float64]]]:
    """Rows with their questions and scores, as many at once as fit."""
    rows = benchmark.rows()
    step = max(1, _CELLS // (len(gallery.ids) * 6))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        questions = [asks_of(row) for row in block]
        asks = [ask for own in questions for ask in own]
        scores = ranker.scores(asks, gallery)
        if benchmark.multi_turn and ranker.aggregation == "average":
            _average_so_far(scores, [len(own) for own in questions])
        yield block, asks, scores


def _average_so_far(scores: NDArray[np.float64], turns: list[int]) -> None:
    """Replace each turn's scores by the mean of the session's turns up to it, in place."""
    start = 0
    for count in turns:
        part = scores[start : start + count]
        np.cumsum(part, axis=0, out=part)
        part /= np.arange(1, count + 1)[:, None]
        start += count


def _excluded(asks: list[Ask], gallery: Gallery) -> NDArray[np.int64] | None:
    """Column of each question's reference where the protocol removes it."""
    if not gallery.benchmark.excludes_reference:
        return None
    return np.array([gallery.place.get(ask.reference or "", -1) for ask in asks], dtype=np.int64)


def _rank_subset(row: dict[str, Any], scores: NDArray[np.float64], gallery: Gallery) -> list[str]:
    members = [image for image in row["subset_image_ids"] if image != row["reference_image_id"]]
    columns = [gallery.place[image] for image in members]
    return top_k(scores[None, columns], members, SUBSET_DEPTH)[0]


def _described(ranker: Scorer, benchmark: Benchmark) -> Any:
    method = ranker.method()
    return method.model_copy(update={"aggregation": ranker.aggregation}) if benchmark.multi_turn else method
