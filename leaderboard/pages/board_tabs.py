"""Tabs of a board's page: numbers by aspect or member, by turn, over the years, drawn and as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import quote

from cir_datasets.common.tables import Cell, Table
from cir_datasets.pages import table_values
from cir_datasets.registry.published_differences import Number
from cir_metrics.errors import UnknownNameError
from leaderboard.boards import Board
from leaderboard.inspection.numbers import EntryNumbers, MemberNumbers, main_cutoff
from leaderboard.pages import board_about, queries_tab
from leaderboard.pages.board_head import in_short, ranked_by
from leaderboard.pages.board_rows import lines_of
from leaderboard.pages.plots import (
    MOST_SERIES,
    Bars,
    Curve,
    Dated,
    Point,
    Trend,
    bars_svg,
    curve_svg,
    trend_svg,
)
from leaderboard.pages.published_rows import PublishedLine, rows_for
from leaderboard.pages.site import PLOT_POLICY, Page, Site
from submissions.scoring.score_report import main_value, shown_value

TABLE, ASPECTS, TURNS, TREND, QUERIES, ABOUT = "", "aspects", "turns", "trend", "queries", "about"
_FIRST_SHOWN = 5
"""Methods that are drawn where the address names none."""
_OFFERED = 60
"""Methods that a reader may choose of, from above."""


def tabs_of(board: Board) -> dict[str, str]:
    """The tabs that a board has on every server, by name in the address; the table's name is empty.

    Args:
        board: the board.

    Example:
        >>> from leaderboard import boards
        >>> tabs_of(boards.board("shapes/multiturn_val"))
        {'': 'Table', 'turns': 'Turns', 'trend': 'Trend', 'about': 'About'}
    """
    found = {TABLE: "Table"}
    if board.suite is not None:
        found[ASPECTS] = "Members"
    elif not board.sealed and board.spec.kind == "single_turn" and not board.dialogue:
        found |= {ASPECTS: "Aspects"} if board.spec.card.report.by_aspect else {}
    if not board.sealed and board.suite is None and (board.spec.kind == "multi_turn" or board.dialogue):
        found[TURNS] = "Turns"
    if board.primary_unit == "percent":
        found[TREND] = "Trend"
    return {**found, ABOUT: "About"}


def tabs_here(site: Site, board: Board) -> dict[str, str]:
    """The tabs of a board on this server: its queries too, where their data is here and they may be shown.

    Args:
        site: of the server.
        board: the board.
    """
    found = tabs_of(board)
    if not queries_tab.can_list(site, board):
        return found
    about = found.pop(ABOUT)
    return {**found, QUERIES: "Queries", ABOUT: about}


def asked_tab(query: Mapping[str, str], tabs: Mapping[str, str]) -> str:
    """The tab that an address names, by its own name or by what the page calls it.

    Args:
        query: of the address.
        tabs: the board's, by name what the page calls them.

    Example:
        >>> asked_tab({"tab": "members"}, {"": "Table", "aspects": "Members"})
        'aspects'
    """
    said = query.get("tab", "")
    titled = (name for name, title in tabs.items() if title.casefold() == said.casefold())
    return said if said in tabs else next(titled, said)


def page(site: Site, board: Board, query: Mapping[str, str]) -> Page | None:
    """The page of a tab, or None where the address names none that the board has.

    Args:
        site: of the server.
        board: which board.
        query: of the address: `tab`, `e` (ids of entries by commas) and `metric`.
    """
    tabs = tabs_here(site, board)
    tab = asked_tab(query, tabs)
    if tab == TABLE or tab not in tabs:
        return None
    if tab == ABOUT:
        made = board_about.page(site, board, tabs)
    elif tab == QUERIES:
        made = queries_tab.page(site, board, query, tabs)
    else:
        words, values = _values(site, board, query, tab)
        about = f"{words} of {board.title}: {values['about']}"
        made = Page("board_tab.html", _title(board, words, values), about, values)
    view = site.server.tables.of(board).view
    return replace(made, values={**made.values, **in_short(board, view, lines_of(board, view))})


def plot_page(site: Site, board: Board, query: Mapping[str, str]) -> Page:
    """The page of a tab's plot by plotly, which is loaded there and nowhere else.

    Args:
        site: of the server.
        board: which board.
        query: as for `page`.

    Raises:
        UnknownNameError: the address names no tab that the board has.
    """
    tab = query.get("tab", "")
    if tab in (TABLE, ABOUT) or tab not in tabs_of(board):
        raise UnknownNameError(f"no plot {tab!r} of {board.id}. Fix: go there from a tab of the board.")
    words, values = _values(site, board, query, tab)
    title = f"{_title(board, words, values)}, interactive"
    return Page("board_plot.html", title, f"{words} of {board.title}.", values, policy=PLOT_POLICY)


def _title(board: Board, words: str, values: Mapping[str, Any]) -> str:
    """The board's, with the tab, the metric where there are several, and methods that the address names."""
    said = [f"{board.title}: {words.lower()}"]
    said += [label for name, label in values["metrics"][1:] if name == values["metric"]]
    drawn = [each["name"] for each in values["offered"] if each["chosen"]] if values["asked"] else []
    named = " and ".join([*drawn[:2], *([f"{len(drawn) - 2} more"] if drawn[2:] else [])])
    return ", ".join(filter(None, (*said, named)))


def _values(site: Site, board: Board, query: Mapping[str, str], tab: str) -> tuple[str, dict[str, Any]]:
    """The tab's words, and what its template asks for."""
    tabs = tabs_here(site, board)
    rows = site.server.tables.of(board).view["rows"]
    chosen, remarks = _chosen(rows, query.get("e", ""))
    if tab == TREND:
        shown = _trend(board, rows)
    elif board.suite is not None:
        shown = _members(board, chosen)
    else:
        shown = _by_group(site, board, chosen, query, tab)
    names = {row["submission"] for row in chosen}
    offered = [
        {"id": row["submission"], "name": _name(row), "chosen": row["submission"] in names}
        for row in ([] if tab == TREND else rows[:_OFFERED])
    ]
    values = {
        "board": board,
        "path": f"b/{quote(board.id)}",
        "tab": tab,
        "tabs": tabs,
        "asked": query.get("e", ""),
        "remarks": [*remarks, *shown.pop("remarks", [])],
        "offered": offered,
        "most": MOST_SERIES,
        "metric": "",
        "metrics": [],
        "figure": {},
        **shown,
    }
    return tabs[tab], values


def _name(row: Mapping[str, Any]) -> str:
    return str(row["method"].get("name", "unnamed"))


def _chosen(rows: Sequence[Mapping[str, Any]], asked: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows that are drawn, and what is said of the others that the address names."""
    ids = list(dict.fromkeys(filter(None, map(str.strip, asked.split(",")))))
    by_id = {row["submission"]: row for row in rows}
    found = [by_id[each] for each in ids if each in by_id]
    remarks = []
    if len(found) < len(ids):
        remarks.append("Entries that do not stand on this board are left out.")
    if len(found) > MOST_SERIES:
        remarks.append(f"The first {MOST_SERIES} of {len(found)} methods are shown.")
    if not found:
        found = [row for row in rows if row["rank"] is not None][:_FIRST_SHOWN]
    return found[:MOST_SERIES], remarks


def _by_group(
    site: Site, board: Board, chosen: Sequence[Mapping[str, Any]], query: Mapping[str, str], tab: str
) -> dict[str, Any]:
    """Aspects or turns of the chosen entries, as far as their numbers are there."""
    found, waiting = [], []
    for row in chosen:
        submission = site.server.store.submission(row["submission"])
        numbers = None if submission is None else site.server.numbers.of(submission)
        if numbers is None:
            waiting.append(_name(row))
        else:
            found.append((_name(row), numbers))
    shown = _turns(board, found) if tab == TURNS else _aspects(board, found, query.get("metric", ""))
    if waiting:
        words = f"Not there yet: {', '.join(waiting)}. Their lists are read in the background; load this page"
        shown["remarks"] = [f"{words} again in a few seconds."]
    return shown


def _aspects(board: Board, found: Sequence[tuple[str, EntryNumbers]], asked: str) -> dict[str, Any]:
    metrics = list(board.spec.card.report.by_aspect)
    metric = asked if asked in metrics else board.primary if board.primary in metrics else metrics[0]
    label = _label(board, metric)
    about = f"{label} by aspect: what the sentence of a query is about. A query may have several."
    shown: dict[str, Any] = {"about": about, "metric": metric, "plot": "", "tables": []}
    shown["metrics"] = [(each, _label(board, each)) for each in metrics]
    groupings = [(name, each.first.aspects) for name, each in found if each.first.aspects is not None]
    if not groupings:
        return shown
    groups = groupings[0][1].groups
    bars = [
        Bars(name, tuple(group.values.get(metric) for group in grouping.groups))
        for name, grouping in groupings
    ]
    shown["plot"] = bars_svg(
        [f"{group.name} ({group.n})" for group in groups],
        bars,
        title=f"{label} by aspect",
        description=f"{about} The same numbers stand in the table below.",
    )
    shown["figure"] = _bar_figure([group.name for group in groups], bars, label)
    means = groupings[0][1].means
    rows = []
    for place, group in enumerate((*groups, *means)):
        line = [(*grouping.groups, *grouping.means)[place] for _, grouping in groupings]
        expected = group.random.get(metric)
        cells = [_cell(metric, each.values.get(metric)) for each in line]
        rows.append((Cell(group.name), Cell(f"{group.n:,}", group.n), *cells, _cell(metric, expected)))
    heads = ("aspect", "queries", *(name for name, _ in groupings), "random order")
    notes = (f"{label} in per cent.", *groupings[0][1].notes)
    shown["tables"] = [table_values(Table("", heads, tuple(rows), notes))]
    return shown


def _turns(board: Board, found: Sequence[tuple[str, EntryNumbers]]) -> dict[str, Any]:
    k = main_cutoff(board)
    each_round = "round" if board.dialogue is not None else "turn"
    about = (
        f"Hits@{k} by {each_round}: share of all sessions that have found a target among the first {k} "
        f"at that {each_round} or before, with 95 % intervals over sessions."
    )
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    curves = [(name, each.first) for name, each in found if each.first.curve]
    if not curves:
        return shown
    drawn = [
        Curve(name, tuple(Point(float(each.turn), each.value, each.low, each.high) for each in numbers.curve))
        for name, numbers in curves
    ]
    shown["plot"] = curve_svg(
        drawn,
        title=f"Hits@{k} by {each_round}",
        description=f"{about} The same numbers stand in the table below.",
        x_label=each_round,
        y_label=f"Hits@{k}, %",
    )
    shown["figure"] = _curve_figure(drawn, each_round, f"Hits@{k}, %")
    names = tuple(name for name, _ in curves)
    rows = []
    for place, first in enumerate(curves[0][1].curve):
        points = [numbers.curve[place] for _, numbers in curves]
        ends = [f"{100 * each.value:.2f} [{100 * each.low:.2f}, {100 * each.high:.2f}]" for each in points]
        rows.append((Cell(str(first.turn)), *(Cell(words) for words in ends)))
    head = f"Hits@{k} with its 95 % interval, per cent"
    shown["tables"] = [table_values(Table(head, (each_round, *names), tuple(rows)))]
    shown["tables"] += [
        table_values(each)
        for each in (_ranks_by_turn([each for _, each in curves], names), _by_length(curves, k))
        if each is not None
    ]
    return shown


def _ranks_by_turn(numbers: Sequence[MemberNumbers], names: tuple[str, ...]) -> Table | None:
    groupings = [each.turns for each in numbers if each.turns is not None]
    if len(groupings) < len(numbers):
        return None
    rows = tuple(
        (
            Cell(group.name),
            Cell(f"{group.n:,}", group.n),
            *(_cell("mean_rank", each.groups[place].values.get("mean_rank")) for each in groupings),
        )
        for place, group in enumerate(groupings[0].groups)
    )
    note = "Over the sessions that still run; a target that is not listed has the length of the list + 1."
    return Table("Mean rank at the turn itself", ("turn", "sessions", *names), rows, (note,))


def _by_length(curves: Sequence[tuple[str, MemberNumbers]], k: int) -> Table | None:
    groupings = [each.lengths for _, each in curves if each.lengths is not None]
    if len(groupings) < len(curves):
        return None
    name = f"final_recall@{k}"
    rows = tuple(
        (
            Cell(group.name),
            Cell(f"{group.n:,}", group.n),
            *(_cell(name, each.groups[place].values.get(name)) for each in groupings),
        )
        for place, group in enumerate(groupings[0].groups)
    )
    heads = ("turns", "sessions", *(name for name, _ in curves))
    return Table(f"Recall@{k} at the last turn by number of turns, per cent", heads, rows)


def _members(board: Board, chosen: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a suite what ranks, member by member: the board's own numbers."""
    members, label = board.benchmarks, _what_ranks(board)
    about = f"{label} on each benchmark of the suite."
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    if not chosen:
        return shown
    bars = []
    for row in chosen:
        values = []
        for member in members:
            suffix = f"@{member}"
            own = {
                name.removesuffix(suffix): each
                for name, each in row["metrics"].items()
                if name.endswith(suffix)
            }
            values.append(main_value(board.primary.replace("@micro", ""), own))
        bars.append(Bars(_name(row), tuple(values)))
    shown["plot"] = bars_svg(
        list(members),
        bars,
        title=f"{label} by benchmark",
        description=f"{about} The same numbers stand in the table below.",
    )
    shown["figure"] = _bar_figure(list(members), bars, label)
    rows = tuple(
        (Cell(member), *(_cell(board.primary, each.values[place]) for each in bars))
        for place, member in enumerate(members)
    )
    heads = ("benchmark", *(each.name for each in bars))
    shown["tables"] = [table_values(Table("", heads, rows, (f"{label} in per cent.",)))]
    return shown


def _what_ranks(board: Board) -> str:
    """What ranks, in words that say what a mean is over."""
    said = ranked_by(board)
    return said[0].upper() + said[1:]


def _trend(board: Board, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    label = _what_ranks(board)
    about = (
        f"{label} by year: each point is a method, and the line joins the best so far, which are named. "
        "The tables below have all names and sources."
    )
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    own: list[tuple[str, Dated]] = []
    told: dict[str, list[tuple[Dated, PublishedLine]]] = {}
    for row in rows:
        if row["rank"] is not None and not row["baseline"] and row["published_at"]:
            moment = datetime.fromisoformat(row["published_at"])
            words = f"{_name(row)}, {moment:%Y-%m-%d}: {100 * row['main']:.2f}"
            own.append((f"{moment:%Y-%m-%d}", Dated(_name(row), _year(moment), row["main"], words)))
    for line in rows_for(board):
        number, year = line.numbers.get(board.primary), line.row.year
        if number is not None and year is not None:
            words = f"{line.row.method}, {year}: {number.text} ({line.where})"
            value = float(number.value) / 100
            of = f" of the test split ({line.benchmark})" if line.other_split else ""
            # A year alone is drawn in its middle.
            dated = Dated(line.row.method, year + 0.5, value, words)
            told.setdefault(f"Published results{of}, as reported", []).append((dated, line))
    trends = [Trend("Entries of this board", tuple(each for _, each in own))] if own else []
    trends += [Trend(name, tuple(each for each, _ in lines)) for name, lines in told.items()]
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
    shown["figure"] = _trend_figure(trends, f"{label}, %")
    by_moment = sorted(own, key=lambda each: each[0])
    if own:
        cells = tuple((Cell(at), Cell(each.name), _cell(board.primary, each.value)) for at, each in by_moment)
        shown["tables"].append(
            table_values(Table("Entries of this board", ("published", "method", label), cells))
        )
    for name, reported in told.items():
        lines = tuple(
            (
                Cell(str(line.row.year)),
                Cell(each.name),
                Cell(_as_printed(line.numbers[board.primary]), each.value),
                Cell(line.where),
            )
            for each, line in sorted(reported, key=lambda one: (one[0].year, one[0].value))
        )
        note = (
            "As reported; whether the protocols agree is said on the page of published results. "
            "The year is the one that the source gives the method; where it gives none, the source's own."
        )
        if any(line.numbers[board.primary].is_derived for _, line in reported):
            note += " An m behind a number marks a mean that the source does not print."
        heads = ("year", "method", label, "source")
        shown["tables"].append(table_values(Table(name, heads, lines, (note,))))
    return shown


def _as_printed(number: Number) -> str:
    return f"{number.text} m" if number.is_derived else number.text


def _bar_figure(groups: Sequence[str], bars: Sequence[Bars], label: str) -> dict[str, Any]:
    """What plotly draws; per cent. Colours are the style sheet's, which the page's script takes."""
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": escape(each.name),
            "x": [None if value is None else 100 * value for value in each.values],
            "y": list(groups),
        }
        for each in bars
    ]
    axes = {
        "xaxis": {"title": {"text": f"{label}, %"}},
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    return {
        "data": data,
        "layout": {"barmode": "group", "height": 120 + len(groups) * (22 * len(bars) + 14), **axes},
    }


def _curve_figure(curves: Sequence[Curve], x_label: str, y_label: str) -> dict[str, Any]:
    data = []
    for each in curves:
        ends = [(point.y if p is None else p) for point in each.points for p in (point.low, point.high)]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": escape(each.name),
                "x": [point.x for point in each.points],
                "y": [100 * point.y for point in each.points],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [
                        100 * (high - point.y) for point, high in zip(each.points, ends[1::2], strict=True)
                    ],
                    "arrayminus": [
                        100 * (point.y - low) for point, low in zip(each.points, ends[::2], strict=True)
                    ],
                },
            }
        )
    axes = {
        "xaxis": {"title": {"text": x_label}, "dtick": 1},
        "yaxis": {"title": {"text": y_label}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": {"height": 480, **axes}}


def _trend_figure(trends: Sequence[Trend], y_label: str) -> dict[str, Any]:
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": escape(each.name),
            "x": [value.year for value in each.values],
            "y": [100 * value.value for value in each.values],
            # Plotly reads some tags in texts: names of others stay text.
            "text": [escape(value.words) for value in each.values],
            "hovertemplate": "%{text}<extra></extra>",
        }
        for each in trends
    ]
    years = sorted({math.floor(value.year) for each in trends for value in each.values})
    ticks = list(range(years[0], years[-1] + 1))
    axes = {
        "xaxis": {
            "title": {"text": "year"},
            "tickvals": [year + 0.5 for year in ticks],
            "ticktext": list(map(str, ticks)),
        },
        "yaxis": {"title": {"text": y_label}},
    }
    return {"data": data, "layout": {"height": 480, **axes}}


def _year(moment: datetime) -> float:
    return moment.year + (moment.timetuple().tm_yday - 1) / 366


def _label(board: Board, metric: str) -> str:
    if metric == board.primary:
        return board.primary_label
    return next((column.label for column in board.columns if column.metric == metric), metric)


def _cell(metric: str, value: float | None) -> Cell:
    return Cell(shown_value(metric, value).strip(), value)
