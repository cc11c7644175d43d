"""A suite's page: the mean that ranks, and the members' numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.registry import base_spec
from cir_datasets.registry.published import Number, Reported, published
from cir_datasets.registry.schema import is_micro, main_metric_terms
from cir_datasets.registry.suites import Suite, suite
from leaderboard.boards import Board, main_of_member
from leaderboard.pages.board.head import in_short
from leaderboard.pages.board.rows import lines_of
from leaderboard.pages.published_rows import boards_of
from leaderboard.pages.published_tables import column_of, title_of
from leaderboard.pages.site import Page, Site
from leaderboard.standings.views import method_name


@dataclass(frozen=True)
class Member:
    """A benchmark of a suite.

    Args:
        id: of the benchmark.
        title: what it is called.
        board: id of its own board, or empty.
        queries: their number, or None where it is not known.
        gallery: number of images, or None.
    """

    id: str
    title: str
    board: str
    queries: int | None
    gallery: int | None


@dataclass(frozen=True)
class SuiteLine:
    """An entry of the suite's board.

    Args:
        row: as the board's table has it.
        name: of the method.
        members: by member the value of what ranks, a fraction, or None.
    """

    row: Mapping[str, Any]
    name: str
    members: tuple[float | None, ...]


@dataclass(frozen=True)
class ReportedLine:
    """A published row with the suite's mean.

    Args:
        row: the row.
        mean: as it is printed, or the mean of printed numbers.
        members: by member the number of the same metric, or None.
    """

    row: Reported
    mean: Number
    members: tuple[Number | None, ...]


def page(site: Site, suite_id: str) -> Page:
    """The page.

    Args:
        site: of the server.
        suite_id: such as `fashioniq/val`.

    Raises:
        UnknownNameError: there is no such suite; the message names the nearest.
    """
    found = suite(suite_id)
    own = boards_of(suite_id)
    board = own[0] if own else None
    view = site.server.tables.of(board).view if board is not None else None
    return Page(
        "suite.html",
        f"Suite: {board.title if board is not None else found.title}",
        f"{found.summary} The mean, and its {len(found.benchmarks)} members beside it."[:160],
        {
            "suite": found,
            "board": board,
            "view": view,
            "metric": column_of(found.main_metric),
            "of_member": _of_member(found),
            "weighs": _weighs(board),
            **({} if board is None or view is None else in_short(board, view, lines_of(board, view))),
            "members": [_member(name) for name in found.benchmarks],
            "lines": [_line(found, row) for row in view["rows"]] if view is not None else [],
            "reported": _reported(found),
        },
    )


def _of_member(found: Suite) -> str:
    """What is taken of each member, in a sentence."""
    heads = [column_of(term).head for term in main_metric_terms(found.main_metric)]
    if len(heads) == 1:
        return heads[0]
    return f"mean of {', '.join(heads[:-1])} and {heads[-1]}"


def _weighs(board: Board | None) -> str:
    """What weighs the same in the mean that ranks: a member, or a query."""
    if board is not None and any(map(is_micro, board.primary_terms)):
        return "query"
    return "member"


def _member(benchmark: str) -> Member:
    config = base_spec(benchmark).config
    own = boards_of(benchmark)
    title = own[0].short_title if own else title_of(benchmark)
    return Member(benchmark, title, own[0].id if own else "", config.queries, config.gallery)


def _line(found: Suite, row: Mapping[str, Any]) -> SuiteLine:
    members = tuple(main_of_member(found.main_metric, row["metrics"], name) for name in found.benchmarks)
    return SuiteLine(row, method_name(row), members)


def _reported(found: Suite) -> list[ReportedLine]:
    """Published rows with the suite's mean, the best first."""
    lines = []
    for row in published():
        mean = row.numbers.get((found.id, found.main_metric))
        if mean is not None:
            members = tuple(row.numbers.get((name, found.main_metric)) for name in found.benchmarks)
            lines.append(ReportedLine(row, mean, members))
    return sorted(lines, key=lambda line: -line.mean.value)
