"""An entry's numbers by aspect, by turn, and by member of a suite, as plots and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import Cell, Table
from cir_datasets.pages import table_values
from cir_metrics.catalogue import METRICS
from leaderboard.boards import Board, main_of_member
from leaderboard.inspection.hits import main_cutoff, turn_label, turn_word
from leaderboard.inspection.numbers import EntryNumbers, MemberNumbers
from leaderboard.pages.figures import chance, with_interval
from leaderboard.pages.labels import metric_label, ranked_by_heading
from leaderboard.pages.plots import Bars, bars_svg, hits_svg
from leaderboard.standings.views import method_name
from submissions.scoring.score_report import is_rank, shown_value

if TYPE_CHECKING:
    from submissions.report.grouping import Grouping


def aspects(board: Board, found: Sequence[tuple[str, MemberNumbers]], asked: str = "") -> dict[str, Any]:
    """Numbers by aspect.

    Args:
        board: of single queries.
        found: names of methods, and their numbers on one benchmark.
        asked: the metric that the address names, or empty.
    """
    groupings = [(name, each.aspects) for name, each in found if each.aspects is not None]
    reported = [group.values for _, grouping in groupings[:1] for group in grouping.groups[:1]]
    metrics = list(reported[0] if reported else board.spec.card.report.by_aspect)
    metric = asked if asked in metrics else leading_metric(board, metrics)
    label = metric_label(board, metric)
    about = f"{label} by aspect: what the sentence of a query is about."
    shown: dict[str, Any] = {"about": about, "metric": metric, "plot": "", "tables": []}
    if asked not in ("", *metrics):
        known = ", ".join(metrics)
        shown["remarks"] = [f"{asked[:60]} is not reported by aspect; {label} is shown. There are: {known}."]
    shown["metrics"] = [(each, metric_label(board, each)) for each in metrics]
    if not groupings:
        return shown
    groups = groupings[0][1].groups
    bars: list[Bars] = [
        (name, [group.values.get(metric) for group in grouping.groups]) for name, grouping in groupings
    ]
    shown["plot"] = bars_svg(
        [f"{group.name} ({group.n})" for group in groups],
        bars,
        title=f"{label} by aspect",
        description=f"{about} The same numbers stand in the table below.",
    )
    means = groupings[0][1].means
    rows = []
    for place, group in enumerate((*groups, *means)):
        line = [(*grouping.groups, *grouping.means)[place] for _, grouping in groupings]
        expected = group.random.get(metric)
        cells = [_cell(metric, each.values.get(metric)) for each in line]
        cells.append(Cell(chance(expected, "rank" if is_rank(metric) else "percent"), expected))
        rows.append((Cell(group.name), Cell(f"{group.n:,}", group.n), *cells))
    heads = ("aspect", "queries", *(name for name, _ in groupings), "random order")
    notes = (f"{label} in per cent.", *groupings[0][1].notes)
    shown["tables"] = [table_values(Table("", heads, tuple(rows), notes))]
    return shown


def turns(board: Board, found: Sequence[tuple[str, MemberNumbers]]) -> dict[str, Any]:
    """Numbers by turn or round, and by length of session.

    Args:
        board: of sessions or dialogues.
        found: names of methods, and their numbers on one benchmark.
    """
    k, label = main_cutoff(board), turn_label(board)
    each_round = turn_word(board)
    about = (
        f"{label} by {each_round}: share of all sessions that have found a target among the first {k} "
        f"at that {each_round} or before, with 95 % intervals over sessions."
    )
    if label.startswith(METRICS["turn_recall"].short):
        about = (
            f"{label} by turn: share of the sessions that still run whose target of that turn is among the "
            f"first {k}, with 95 % intervals over sessions."
        )
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    curves = [(name, each) for name, each in found if each.curve]
    if not curves:
        return shown
    shown["plot"] = hits_svg([(name, numbers.curve) for name, numbers in curves], label, each_round)
    names = tuple(name for name, _ in curves)
    rows = []
    for place, first in enumerate(curves[0][1].curve):
        points = [numbers.curve[place] for _, numbers in curves]
        ends = [with_interval(each.value, (each.low, each.high), "percent") for each in points]
        rows.append((Cell(str(first.turn)), *(Cell(words) for words in ends)))
    head = f"{label} with its 95 % interval, per cent"
    shown["tables"] = [table_values(Table(head, (each_round, *names), tuple(rows)))]
    note = "Over the sessions that still run; a target that is not listed has the length of the list + 1."
    ranks = _by_group([each.turns for _, each in curves], names, "mean_rank", "turn")
    if ranks is not None:
        shown["tables"].append(table_values(Table("Mean rank at the turn itself", *ranks, (note,))))
    recalls = _by_group([each.lengths for _, each in curves], names, f"final_recall@{k}", "turns")
    if recalls is not None:
        title = f"Recall@{k} at the last turn by number of turns, per cent"
        shown["tables"].append(table_values(Table(title, *recalls)))
    return shown


def _by_group(
    found: Sequence[Grouping | None], names: Sequence[str], metric: str, head: str
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]] | None:
    """Heads and rows of a metric by group of sessions; None where a method has no such groups."""
    groupings = [each for each in found if each is not None]
    if len(groupings) < len(found):
        return None
    rows = tuple(
        (
            Cell(group.name),
            Cell(f"{group.n:,}", group.n),
            *(_cell(metric, each.groups[place].values.get(metric)) for each in groupings),
        )
        for place, group in enumerate(groupings[0].groups)
    )
    return (head, "sessions", *names), rows


def parts_of(board: Board, found: Sequence[tuple[str, EntryNumbers]]) -> list[dict[str, Any]]:
    """What entries have by turn and by aspect, benchmark by benchmark, each with its title.

    Args:
        board: the board.
        found: names of methods, and their numbers.
    """
    parts = []
    for members in zip(*(numbers for _, numbers in found), strict=True):
        beside = [(name, member) for (name, _), member in zip(found, members, strict=True)]
        where = f", {members[0].benchmark}" if board.takes_bundles else ""
        if all(member.curve for member in members):
            title = f"{turn_label(board)} by {turn_word(board)}{where}"
            parts.append({"title": title, **turns(board, beside)})
        if all(member.aspects for member in members):
            shown = aspects(board, beside)
            parts.append({"title": f"{metric_label(board, shown['metric'])} by aspect{where}", **shown})
    return parts


def members_of(board: Board, chosen: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a suite what ranks, member by member: the board's own numbers.

    Args:
        board: of a suite.
        chosen: rows of its table.
    """
    members, label = board.benchmarks, ranked_by_heading(board)
    about = f"{label} on each benchmark of the suite."
    shown: dict[str, Any] = {"about": about, "plot": "", "tables": []}
    if not chosen:
        return shown
    bars: list[Bars] = [
        (method_name(row), [main_of_member(board.primary, row["metrics"], member) for member in members])
        for row in chosen
    ]
    shown["plot"] = bars_svg(
        list(members),
        bars,
        title=f"{label} by benchmark",
        description=f"{about} The same numbers stand in the table below.",
    )
    rows = tuple(
        (Cell(member), *(_cell(board.primary, values[place]) for _, values in bars))
        for place, member in enumerate(members)
    )
    heads = ("benchmark", *(name for name, _ in bars))
    shown["tables"] = [table_values(Table("", heads, rows, (f"{label} in per cent.",)))]
    return shown


def leading_metric(board: Board, known: Iterable[str]) -> str:
    """Which of some metrics a table by group shows: what ranks, else a term of it, else the first.

    Args:
        board: the board.
        known: printed names of the metrics; empty for none.

    Returns:
        Its printed name, or empty.
    """
    names = list(known)
    return next((name for name in (board.primary, *board.primary_terms) if name in names), (names or [""])[0])


def _cell(metric: str, value: float | None) -> Cell:
    return Cell(shown_value(metric, value).strip(), value)
