"""Published results: the numbers that papers and lists print, a benchmark at a time, and where they stand.

None is ranked with ours: it is unknown whether two tables used the same gallery and rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cir_datasets.common.terminal import counted
from cir_datasets.registry.published import Number, Reported, published
from cir_metrics.errors import did_you_mean
from leaderboard.pages.published_differences import MethodDifferences, differences
from leaderboard.pages.published_rows import best_for, boards_of, row_anchor
from leaderboard.pages.published_tables import (
    column_of,
    is_called,
    published_benchmarks,
    rows_of,
    tables_of,
    title_of,
)
from leaderboard.pages.site import Page, Site, shortened

_LONGEST_ASKED = 100
"""Letters of a name that the address asks for."""


@dataclass(frozen=True)
class IndexLine:
    """A benchmark in the list of all.

    Args:
        benchmark: its id.
        title: what it is called.
        rows: how many rows sources print.
        sources: how many these are.
        metric: head of the column whose best is shown.
        best: the best number, as reported.
        row: whose it is.
        anchor: id of that row's place below.
    """

    benchmark: str
    title: str
    rows: int
    sources: int
    metric: str
    best: Number
    row: Reported
    anchor: str


def page(site: Site, query: Mapping[str, str]) -> Page:
    """The page.

    Args:
        site: of the server.
        query: of the address: `benchmark` and `method`, which choose what is shown.
    """
    benchmark, method = (query.get(name, "").strip()[:_LONGEST_ASKED] for name in ("benchmark", "method"))
    all_benchmarks = published_benchmarks()
    all_methods = sorted(
        {name for row in published() for name in row.names}, key=lambda name: (name.casefold(), name)
    )
    overview = not (benchmark or method)
    shown = [] if overview else [name for name in all_benchmarks if benchmark in ("", name)]
    tables = [table for name in shown for table in tables_of(name, method.casefold())]
    rows = [row for row in rows_of(method) if overview or any(name in shown for name, _ in row.values)]
    several = sorted(
        (one for one in differences() if _is_shown(one, benchmark, method)),
        key=lambda one: all_benchmarks.index(one.benchmark),
    )
    sources = {row.source: row for row in rows}
    counts = (len(rows), len(sources))
    return Page(
        "published.html",
        _title(shortened(benchmark), shortened(method)),
        _description(shortened(benchmark), shortened(method), counts),
        {
            "asked": {"benchmark": benchmark, "method": method},
            "index": [_index_line(name) for name in all_benchmarks] if overview else [],
            "sources": sorted(sources.values(), key=lambda row: row.key.casefold()),
            "nothing": "" if tables or overview else _nothing(benchmark, method, all_benchmarks, all_methods),
            "benchmarks": [(name, title_of(name)) for name in all_benchmarks],
            "methods": all_methods,
            "shown": [(name, list(group)) for name, group in groupby(tables, lambda one: one.benchmark)],
            "titles": {name: title_of(name) for name in all_benchmarks},
            "boards": {name: [board.id for board in boards_of(name)] for name in shown},
            "differing": several,
            "column_of": column_of,
            "counts": counts,
            "has_means": any(
                number is not None and number.is_derived
                for table in tables
                for line in table.lines
                for number in line.numbers
            ),
        },
        section="published",
    )


def _title(benchmark: str, method: str) -> str:
    on = f" on {title_of(benchmark)}" if benchmark else ""
    return f"Published results{f' of {method}' if method else ''}{on}"


def _description(benchmark: str, method: str, counts: tuple[int, int]) -> str:
    rows, sources = counted(counts[0], "row"), counted(counts[1], "source")
    of, on = f" of {method}" if method else "", f" on {benchmark}" if benchmark else ""
    if not counts[0]:
        return f"No source prints a number{of}{on}."
    if not (of or on):
        return (
            f"What papers and lists print for composed image retrieval: {rows} of {sources}, each with "
            "table and claimed protocol, not ranked with entries."
        )
    said = f"{rows} of {sources}, each with table and claimed protocol, not ranked."
    return f"Published numbers{of}{on} as reported: {said}"


def _index_line(benchmark: str) -> IndexLine:
    rows = [row for row in published() if any(name == benchmark for name, _ in row.values)]
    counts = len(rows), len({row.source for row in rows})
    best, metric, row, anchor = _highest(benchmark)
    return IndexLine(benchmark, title_of(benchmark), *counts, metric, best, row, anchor)


def _highest(benchmark: str) -> tuple[Number, str, Reported, str]:
    """A benchmark's highest number, as its board names it, with its metric, its row and that row's place."""
    for board in boards_of(benchmark):
        line = best_for(board)
        if line is not None and not line.other_split:
            metric = column_of(board.primary).head
            if (benchmark, board.primary) not in line.row.numbers:
                metric += ", round 1"
            return line.numbers[board.primary], metric, line.row, row_anchor(benchmark, line.row)
    table = tables_of(benchmark)[0]
    first = table.lines[0]
    best = next(number for number in first.numbers if number is not None)
    head = table.columns[first.numbers.index(best)].head
    return best, head, first.row, row_anchor(benchmark, first.row)


def _is_shown(one: MethodDifferences, benchmark: str, method: str) -> bool:
    return benchmark in ("", one.benchmark) and (
        not method or any(is_called(row, method) for row, _ in one.rows)
    )


def _nothing(benchmark: str, method: str, benchmarks: Sequence[str], methods: Sequence[str]) -> str:
    if benchmark and benchmark not in benchmarks:
        return f"No source prints numbers of a benchmark {benchmark!r}.{did_you_mean(benchmark, benchmarks)}"
    if method and method.casefold() not in map(str.casefold, methods):
        return f"No source has a method {method!r}.{did_you_mean(method, methods)}"
    return f"No source prints a number of {method!r} on {benchmark!r}."
