"""A rank file against a benchmark's ground truth, as the numbers that metrics are computed from.

Nothing is looked at one by one: the ground truth's ids become the rank file's codes in one look-up, and the
places that hold them are marked for all queries together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import distinct, id_array, list_lengths, numbers
from cir_metrics.errors import InputError
from cir_metrics.evaluation import CodedQueries, CodedSessions, first_ranks, mark
from cir_metrics.sums import UNLISTED
from submissions.errors import SubmissionError
from submissions.rank_file.columns import Codes, Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.model import RankFile

_COLUMNS = {
    "target": "target_image_id",
    "positives": "positive_image_ids",
    "negatives": "negative_image_ids",
    "sessions": "ground_truth_ids",
}
_MASKS = {"target": "target", "positives": "positive", "negatives": "negative"}


@dataclass(frozen=True)
class Coding:
    """A rank file's rankings in the benchmark's order, coded against its ground truth.

    Args:
        coded: what the metrics read.
        missing: rankings that the file does not hold.
        answered: queries or sessions that have all theirs.
        reference_held: how many lists hold the reference of their query or turn, wherever it stands, and how
            many were looked at; None where no list answers a query with a reference.
    """

    coded: CodedQueries | CodedSessions
    missing: int
    answered: int
    reference_held: tuple[int, int] | None = None


def code_queries(rank_file: RankFile, benchmark: Benchmark, fields: Collection[str], depth: int) -> Coding:
    """Code the rankings of queries.

    Args:
        rank_file: validated.
        benchmark: single-turn, with public ground truth.
        fields: what the metrics need of a reference (`MetricEntry.fields`).
        depth: places of each ranking to look at.

    Raises:
        InputError: a query lacks ground truth that a metric needs.
        SubmissionError: an id is not text.
    """
    subset_ranks, found = None, _positions(as_columns(rank_file.rankings), benchmark.query_ids)
    if rank_file.subset_rankings is not None:
        subset_ranks, found_subsets = _subset_ranks(rank_file.subset_rankings, benchmark)
        if not rank_file.rankings:
            found = found_subsets
    missing = int((found < 0).sum())
    answered = len(found) - missing
    if not rank_file.rankings and subset_ranks is not None:
        return Coding(CodedQueries(n=len(found), subset_ranks=subset_ranks), missing, answered)
    columns = as_columns(rank_file.rankings)
    codes = columns.places(found, depth)
    wanted = [each for each in _MASKS if each in fields]
    truth = dict(zip(wanted, _truth(benchmark, wanted, columns), strict=True))
    masks = dict(zip(wanted, mark(codes, list(truth.values()), len(columns.images)), strict=True))
    coded = CodedQueries(
        n=len(found),
        list_lengths=(codes >= 0).sum(axis=1),
        n_positives=np.diff(truth["positives"][0]) if "positives" in truth else None,
        subset_ranks=subset_ranks,
        **{_MASKS[each]: mask for each, mask in masks.items()},
    )
    return Coding(coded, missing, answered, references_held(columns, found, benchmark.references))


def code_sessions(rank_file: RankFile, benchmark: Benchmark, depth: int) -> Coding:
    """Code the rankings of sessions.

    Args:
        rank_file: validated.
        benchmark: multi-turn.
        depth: places of each ranking to look at.

    Raises:
        InputError: a session lacks ground truth.
        SubmissionError: an id is not text.
    """
    columns = as_columns(rank_file.rankings, by_turn=True)
    num_turns = np.array(benchmark.column("num_turns"), dtype=np.int64)
    found = _positions(columns, benchmark.query_ids)
    starts = columns.turn_offsets if columns.turn_offsets is not None else columns.offsets
    given = np.where(found < 0, 0, np.diff(starts)[found]) if len(columns) else np.zeros_like(found)
    turns = np.arange(int(num_turns.max()))
    here = turns < num_turns[:, None]
    first = starts[found] if len(columns) else np.zeros_like(found)
    rankings = np.where(turns < given[:, None], first[:, None] + turns, -1)
    sessions = np.nonzero(here)[0]
    codes = columns.places(rankings[here], depth)
    [truth] = _truth(benchmark, ["sessions"], columns)
    [positive] = mark(codes, [_repeated(truth, sessions)], len(columns.images))
    ranks = np.full(here.shape, UNLISTED, dtype=np.int64)
    ranks[here] = first_ranks(positive)
    list_lengths = np.zeros_like(ranks)
    list_lengths[here] = (codes >= 0).sum(axis=1)
    # An empty ranking is refused but where it stands for a turn that a TREC run leaves out.
    gone = (here & (list_lengths == 0)).sum(axis=1)
    coded = CodedSessions(ranks, list_lengths, num_turns)
    held = references_held(columns, rankings[here], benchmark.references)
    return Coding(coded, int(gone.sum()), int((gone == 0).sum()), held)


def references_held(
    columns: Columns, rankings: NDArray[np.int64], references: pa.Array | pa.ChunkedArray
) -> tuple[int, int] | None:
    """How many lists hold the reference of their query or turn, over the whole lists as they stand.

    Args:
        columns: the lists.
        rankings: the number of the list that answers each query or turn, -1 for none.
        references: of each query or turn, as `Benchmark.references` has them.

    Returns:
        That number and how many lists were looked at; None where there were none.
    """
    answered = np.flatnonzero((rankings >= 0) & (numbers(references.is_valid().cast("uint8")) > 0))
    answered = answered[columns.lengths[rankings[answered]] > 0]
    if not len(answered):
        return None
    wanted = np.full(len(columns.lengths), -1, dtype=np.int32)
    wanted[rankings[answered]] = columns.codes_of(references)[answered]
    return int(columns.holding(wanted).sum()), len(answered)


def as_columns(rankings: Mapping[str, Any], *, by_turn: bool = False) -> Columns:
    """Rankings as columns, whatever they are held in.

    Raises:
        SubmissionError: an id is not text.
    """
    if isinstance(rankings, Columns):
        return rankings
    try:
        return Columns.of_lists(rankings, by_turn=by_turn)
    except (TypeError, ValueError) as error:
        raise SubmissionError(
            f"the rankings hold what is not text: {error}. Fix: use strings as ids."
        ) from error


def _positions(columns: Columns, query_ids: list[str]) -> NDArray[np.int64]:
    get = columns.position.get
    return np.array([get(query, -1) for query in query_ids], dtype=np.int64)


def _truth(
    benchmark: Benchmark, wanted: Sequence[str], columns: Columns
) -> list[tuple[NDArray[np.int64], Codes]]:
    """Of each kind where a query's images start, and their codes: -1 for one that the file does not name."""
    gallery = benchmark.gallery
    of_gallery: Codes | None = None
    found = []
    for each in wanted:
        stored = None if gallery is None else benchmark.places(_COLUMNS[each])
        counts, parts = _flat(benchmark, each, stored)
        if gallery is None or stored is None:
            places, images = distinct(parts)
            codes = columns.codes_of(images)
        else:
            if of_gallery is None:
                of_gallery = _codes_of_gallery(id_array(gallery), columns)
            codes, places = of_gallery, np.concatenate([numbers(part) for part in parts])
        found.append((_ends(counts), codes[places]))
    return found


def _codes_of_gallery(gallery: pa.Array, columns: Columns) -> Codes:
    places = columns.in_gallery(gallery)
    codes = np.full(len(gallery), -1, dtype=np.int32)
    named = np.flatnonzero(places >= 0)
    codes[places[named]] = named
    return codes


def _flat(
    benchmark: Benchmark, each: str, column: pa.ChunkedArray | None
) -> tuple[NDArray[Any], list[pa.Array]]:
    """How many images each query has; all of them, one after the other, as ids unless places are given."""
    import pyarrow as pa

    name = _COLUMNS[each]
    if column is None:
        column = benchmark.ids(name)
    if pa.types.is_list(column.type):
        counts = list_lengths(column)
        parts = [chunk.flatten() for chunk in column.chunks]
    else:
        counts = np.concatenate([numbers(chunk.is_valid().cast(pa.int32())) for chunk in column.chunks])
        parts = [chunk.drop_null() for chunk in column.chunks]
    if each != "negatives" and not counts.all():
        query = benchmark.query_ids[int(np.argmin(counts))]
        raise InputError(
            f"{benchmark.id}: query {query!r} has no {name}. Fix: use a metric that this benchmark has or, "
            "where the ground truth is withheld, the publisher's server."
        )
    return counts, parts


def _ends(lengths: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _repeated(
    truth: tuple[NDArray[np.int64], Codes], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Codes]:
    """The images of some rows, a row as often as it is named."""
    offsets, codes = truth
    ends = _ends(np.diff(offsets)[rows])
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
    return ends, codes[np.repeat(offsets[rows], np.diff(ends)) + within]


def _subset_ranks(
    rankings: Mapping[str, Any], benchmark: Benchmark
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rank of each query's target in its subset, and where the subset's ranking lies."""
    columns = as_columns(rankings)
    found = _positions(columns, benchmark.query_ids)
    codes = columns.places(found, int(columns.lengths.max(initial=0)))
    [target] = mark(codes, _truth(benchmark, ["target"], columns), len(columns.images))
    return first_ranks(target), found
