"""The queries of a board as this server has them: nothing is fetched and nothing is prepared for a reader."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from cir_datasets.browse.queries import QueryRows
from cir_datasets.errors import DatasetError
from cir_datasets.prepared import last_prepared
from leaderboard.boards import Board
from leaderboard.inspection.reports import prepared_benchmark
from leaderboard.pages.site import Site, query_path

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark

log = logging.getLogger("leaderboard.pages")

_KEPT = 16
"""Benchmarks whose rows are kept in memory."""


def benchmark_here(spec: BenchmarkSpec) -> Benchmark | None:
    """A benchmark that was prepared on this server, or None; it is read once while its data stays as it is.

    Args:
        spec: the benchmark.
    """
    last = last_prepared(spec)
    if last is None:
        return None
    try:
        return prepared_benchmark(spec.id)
    except DatasetError as error:
        log.warning("%s cannot be read for the pages: %s", spec.id, error)
        return None


def why_hidden(site: Site, board: Board) -> str:
    """Why the queries of a board are not shown on this server, in a sentence; empty where they are.

    Args:
        site: of the server.
        board: the board; of a suite every member must be here.
    """
    if board.sealed:
        return f"The board {board.title} is sealed: its queries and their targets are not shown."
    problem = site.server.tables.problem(board)
    if problem is not None:
        return f"The queries of {board.title} cannot be shown here: {problem}"
    if any(benchmark_here(spec) is None for spec in board.specs):
        said = f"The queries of {board.title} are not prepared on this server. Its organiser prepares them"
        return f"{said}: cir datasets prepare {' '.join(board.benchmarks)}."
    return ""


def queries_of(benchmark_id: str) -> QueryRows:
    """The queries of a benchmark that is prepared here.

    Args:
        benchmark_id: of a board for which `why_hidden` says nothing.
    """
    return _rows_of(benchmark_id, prepared_benchmark(benchmark_id).data_hash)


@functools.lru_cache(_KEPT)
def _rows_of(benchmark_id: str, _data_hash: str) -> QueryRows:
    benchmark = prepared_benchmark(benchmark_id)
    return QueryRows(benchmark.spec, dict(zip(benchmark.query_ids, benchmark.rows(), strict=True)))


def hidden_pictures(board: Board) -> str:
    """Why pictures of a board's queries are shown by their ids.

    Args:
        board: one whose pictures the package does not draw.
    """
    if board.spec.card.status != "folder":
        return "Images are shown by their ids: the pictures are their publisher's."
    command = f"cir datasets browse {board.benchmarks[0]}"
    return f"Images are shown by their ids. {command} shows the pictures on a machine that has them."


def first_query(site: Site, board: Board) -> str:
    """Path of a board's first query; empty where its queries are not shown.

    Args:
        site: of the server.
        board: the board.
    """
    if why_hidden(site, board):
        return ""
    return query_path(board.id, next(iter(queries_of(board.benchmarks[0]).rows)))
