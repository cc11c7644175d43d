"""The best values of a board over the years: entries, and published results as reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cir_datasets.common.terminal import Cell, Table
from cir_datasets.pages import table_values
from cir_datasets.registry.published import Number
from leaderboard.boards import Board
from leaderboard.pages.labels import metric_value, ranked_by_heading
from leaderboard.pages.plots import Dated, Trend, trend_svg
from leaderboard.pages.published_rows import PublishedLine, rows_for
from leaderboard.standings.views import compared_rows, method_name


def trend(board: Board, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The tab's values: a plot and its tables.

    Args:
        board: one that ranks by fractions.
        rows: of its table.
    """
    label = ranked_by_heading(board)
    about = (
        f"{label} by year: each point is a method. The line follows the best value so far and names its "
        "method."
    )
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    own: list[tuple[str, Dated]] = []
    reported: dict[str, list[tuple[Dated, PublishedLine]]] = {}
    for row in compared_rows(rows):
        if not row["baseline"] and row["published_at"]:
            moment = datetime.fromisoformat(row["published_at"])
            name = method_name(row)
            words = f"{name}, {moment:%Y-%m-%d}: {metric_value(board, board.primary, row['main'])}"
            year = moment.year + (moment.timetuple().tm_yday - 1) / 366
            own.append((f"{moment:%Y-%m-%d}", Dated(name, year, row["main"], words)))
    for line in rows_for(board):
        printed, named = line.numbers.get(board.primary), line.row.year
        if printed is not None and named is not None:
            words = f"{line.row.method}, {named}: {printed.text} ({line.where})"
            value = float(printed.value) / 100
            of = f" of the test split ({line.benchmark})" if line.other_split else ""
            # A year alone is drawn in its middle.
            dated = Dated(line.row.method, named + 0.5, value, words)
            reported.setdefault(f"Published results{of}, as reported", []).append((dated, line))
    trends: list[Trend] = [("Entries of this board", [each for _, each in own])] if own else []
    trends += [(name, [each for each, _ in lines]) for name, lines in reported.items()]
    if not trends:
        why = f"No entry with a rank is published here yet, and no published result with a year has {label}"
        shown["remarks"] = [f"{why}: there is nothing to draw."]
        return shown
    shown["plot"] = trend_svg(
        trends,
        title=f"{label} over the years",
        description=about,
        y_label=f"{label}, %",
    )
    by_moment = sorted(own, key=lambda each: each[0])
    if own:
        cells = tuple(
            (Cell(at), Cell(each.name), Cell(metric_value(board, board.primary, each.value), each.value))
            for at, each in by_moment
        )
        shown["tables"].append(
            table_values(Table("Entries of this board", ("published", "method", label), cells))
        )
    for name, points in reported.items():
        lines = tuple(
            (
                Cell(str(line.row.year)),
                Cell(each.name),
                Cell(_as_printed(line.numbers[board.primary]), each.value),
                Cell(line.where),
            )
            for each, line in sorted(points, key=lambda one: (one[0].year, one[0].value))
        )
        note = (
            "As reported; whether the protocols agree is said on the page of published results. "
            "The year is the one that the source gives the method; where it gives none, the source's own."
        )
        if any(line.numbers[board.primary].is_derived for _, line in points):
            note += " An m behind a number marks a mean that the source does not print."
        heads = ("year", "method", label, "source")
        shown["tables"].append(table_values(Table(name, heads, lines, (note,))))
    return shown


def _as_printed(number: Number) -> str:
    return f"{number.text} m" if number.is_derived else number.text
