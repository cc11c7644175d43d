"""Published numbers as tables, a benchmark each: columns, rows, claims, and where sources differ."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry import base_spec, benchmark_ids
from cir_datasets.registry.published import Number, Reported, published
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import find_suite
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import CirError
from leaderboard import boards
from leaderboard.pages.published_differences import differences
from leaderboard.pages.published_rows import boards_of, metric_order, printed_key, row_anchor

_KEPT = 256
"""Choices of benchmark and method whose tables a process keeps."""
_ROUNDS = "by round of a dialogue"
_KINDS = ("", "average precision", _ROUNDS, "by category")
_Numbered = tuple[Reported, dict[str, Number]]
"""A row and its numbers by metric."""


@dataclass(frozen=True)
class ReportedColumn:
    """A metric of a table of published numbers.

    Args:
        metric: its printed name.
        head: what heads the column.
        page: path of the metric's page, or empty.
        group: what it shares with the columns beside it, which stands once above them, or empty.
        part: what heads the column below its group.
    """

    metric: str
    head: str
    page: str
    group: str = ""
    part: str = ""


@dataclass(frozen=True)
class ReportedRow:
    """A published row in the table of one benchmark.

    Args:
        row: the row.
        numbers: by column what the source prints, or None.
        also: rows of other tables of the source that print the same.
        anchor: of the method's differences below, or empty.
        ids: of the places of this row and of those, empty where they stand in an earlier table.
    """

    row: Reported
    numbers: tuple[Number | None, ...]
    also: tuple[Reported, ...]
    anchor: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportedTable:
    """The published numbers of one benchmark that are of one kind.

    Args:
        benchmark: its id.
        kind: empty, or what kind of numbers, in words.
        columns: the metrics.
        lines: the rows, the best in the first column first.
        claims: a row of each source and table, for the protocol that it claims and what is odd about it.
    """

    benchmark: str
    kind: str
    columns: tuple[ReportedColumn, ...]
    lines: tuple[ReportedRow, ...]
    claims: tuple[Reported, ...]

    @property
    def groups(self) -> list[tuple[str, list[ReportedColumn]]]:
        """The columns by what stands above them; a column without a group stands alone."""
        found: list[tuple[str, list[ReportedColumn]]] = []
        for column in self.columns:
            if column.group and found and found[-1][0] == column.group:
                found[-1][1].append(column)
            else:
                found.append((column.group, [column]))
        return found

    @property
    def has_groups(self) -> bool:
        """Whether a line of groups stands above the heads."""
        return any(column.group for column in self.columns)

    @property
    def has_remarks(self) -> bool:
        """Whether something is odd about a row."""
        return any(line.row.note or line.anchor or line.also for line in self.lines)


def title_of(benchmark: str) -> str:
    """What a benchmark or suite is called.

    Args:
        benchmark: its id; one that is not registered is called by its id.
    """
    suite = find_suite(benchmark)
    if suite is not None:
        found = boards_of(benchmark)
        return found[0].short_title if found else suite.title
    if benchmark in benchmark_ids():
        return f"{base_spec(benchmark).card.short_title}, {benchmark.partition('/')[2].replace('_', ' ')}"
    return benchmark


def column_of(metric: str) -> ReportedColumn:
    """A metric as a column of published numbers.

    Args:
        metric: as the data files name it.

    Example:
        >>> column_of("mean(recall@5, recall_subset@1)").head, column_of("hits@1@turn5").head
        ('Mean of R@5, Rs@1', 'Hits@1, round 5')
        >>> column_of("recall@10").page
        'm/recall_at_k'
        >>> column_of("mean(map@5, map@10, map@25)").head, column_of("hits@1@turn5").part
        ('Mean of mAP@5, 10, 25', '5')
    """
    terms = main_metric_terms(metric)
    if len(terms) > 1:
        return _mean_column(metric, [column_of(term) for term in terms])
    plain, _, aspect = metric.partition(" of ")
    plain, _, variant = plain.partition(":")
    name, _, turn = plain.partition("@turn")
    try:
        entry = METRICS[parse_metric(name)[0]]
    except CirError:  # of another benchmark's own scores
        return ReportedColumn(metric, metric, "")
    head = name.replace(entry.printed, entry.short, 1)
    coded = " by released code" if variant == "released_code" else ""
    group, part = "", ""
    if turn:
        group, part = f"{head}, round", turn
    elif aspect:
        group, part = f"{head}{coded}", aspect
    elif coded:
        group, part = f"{entry.short}{coded}", head.removeprefix(entry.short)
    head += f", round {turn}" if turn else ""
    head += f", {aspect}" if aspect else ""
    return ReportedColumn(metric, f"{head}{coded}", f"m/{entry.name}", group, part)


def _mean_column(metric: str, terms: Sequence[ReportedColumn]) -> ReportedColumn:
    """A mean; its metrics are named once where three or more differ in the cutoff alone."""
    heads = [term.head for term in terms]
    names = {head.partition("@")[0] for head in heads}
    groups = {term.group for term in terms}
    if len(names) > 1 or len(heads) < 3:
        return ReportedColumn(metric, f"Mean of {', '.join(heads)}", "")
    cutoffs = [head.partition("@")[2].partition(" ")[0] for head in heads]
    coded = heads[0].partition(" ")[2]
    head = f"Mean of {names.pop()}@{', '.join(cutoffs)}"
    group = groups.pop() if len(groups) == 1 else ""
    return ReportedColumn(metric, f"{head} {coded}".strip(), "", group, "mean" if group else "")


@functools.lru_cache(_KEPT)
def tables_of(benchmark: str, method: str = "") -> tuple[ReportedTable, ...]:
    """The tables of one benchmark: its numbers, average precision, rounds of a dialogue, categories.

    Args:
        benchmark: its id.
        method: whose rows alone are wanted; empty for all.
    """
    found: list[ReportedTable] = []
    seen: set[str] = set()
    rows = rows_of(method)
    own = [(row, row.numbers) for row in rows if any(name == benchmark for name, _ in row.values)]
    has_recall = any(
        name == benchmark and metric == "recall@1" for row in published() for name, metric in row.values
    )
    for kind, words in enumerate(_KINDS):
        of_kind: list[_Numbered] = []
        for row, known in own:
            numbers = {
                metric: number
                for (name, metric), number in known.items()
                if name == benchmark and _kind(metric, has_recall) == kind
            }
            if numbers:
                of_kind.append((row, numbers))
        for said, part in _by_table(words, of_kind) if words == _ROUNDS else ((words, of_kind),):
            if part:
                found.append(_table(benchmark, said, part, seen))
    return tuple(found)


def _by_table(words: str, rows: Sequence[_Numbered]) -> list[tuple[str, list[_Numbered]]]:
    """The rows table by table of the sources: each prints other metrics by round."""
    found: dict[str, list[_Numbered]] = {}
    for row, numbers in rows:
        found.setdefault(f"{words}: {row.paper.cite}, {row.table.name}", []).append((row, numbers))
    return list(found.items())


def _table(benchmark: str, kind: str, rows: Sequence[_Numbered], seen: set[str]) -> ReportedTable:
    metrics = _in_order([metric for _, numbers in rows for metric in numbers])
    anchors = {(row.id, one.benchmark): one.anchor for one in differences() for row, _ in one.rows}
    also: dict[tuple[object, ...], list[Reported]] = {}
    first: dict[tuple[object, ...], _Numbered] = {}
    for row, numbers in rows:
        key = printed_key(row, numbers)
        if key in first:
            also.setdefault(key, []).append(row)
        else:
            first[key] = (row, numbers)
    lines = [
        ReportedRow(
            row,
            tuple(numbers.get(metric) for metric in metrics),
            tuple(also.get(key, ())),
            anchors.get((row.id, benchmark), ""),
            tuple(row_anchor(benchmark, one) for one in (row, *also.get(key, ())) if one.id not in seen),
        )
        for key, (row, numbers) in first.items()
    ]
    # An id stands on a page once: with the first table that has the row.
    seen |= {row.id for row, _ in rows}
    claims = {row.key: row for row, _ in reversed(rows)}
    return ReportedTable(
        benchmark,
        kind,
        tuple(column_of(metric) for metric in metrics),
        tuple(sorted(lines, key=lambda line: _place(line, metrics))),
        tuple(reversed(claims.values())),
    )


def _place(line: ReportedRow, metrics: Sequence[str]) -> tuple[int, Decimal]:
    """By the first column that has a number in the line, the best of those first."""
    at, number = next((at, number) for at, number in enumerate(line.numbers) if number is not None)
    return (at, number.value if "rank" in metrics[at] else -number.value)


def _in_order(metrics: Sequence[str]) -> list[str]:
    """Means first, then metric by metric in the catalogue's order, by cutoff; groups stand together."""
    ordered = sorted(dict.fromkeys(metrics), key=metric_order)
    groups = [column_of(metric).group or metric for metric in ordered]
    # A group's mean stands with the group, where that goes on.
    last = {group: place for place, group in enumerate(groups)}
    return [ordered[place] for place in sorted(range(len(ordered)), key=lambda place: last[groups[place]])]


def _kind(metric: str, has_recall: bool) -> int:
    """Which table a metric stands in; average precision has its own where recall is the usual metric."""
    if "@turn" in metric:
        return 2
    return 3 if " of " in metric else int(has_recall and metric.startswith("map"))


def published_benchmarks() -> list[str]:
    """The benchmarks with published numbers, in the order of `published_order.yaml`, then of the boards."""
    wanted = package_yaml("leaderboard", "pages/published_order.yaml")
    found = sorted({name for row in published() for name, _ in row.values})
    places = {board.benchmark: place for place, board in reversed(list(enumerate(boards.boards())))}
    by_card: dict[str, int] = {}
    for name, place in places.items():
        card = name.partition("/")[0]
        by_card[card] = min(place, by_card.get(card, place))

    def order(name: str) -> tuple[int, int, int]:
        first = wanted.index(name) if name in wanted else len(wanted)
        return (first, by_card.get(name.partition("/")[0], len(places)), places.get(name, len(places)))

    return sorted(found, key=order)


def rows_of(method: str = "") -> list[Reported]:
    """Published rows of a method, or all.

    Args:
        method: its name, in any case; empty for all.
    """
    return [row for row in published() if not method or is_called(row, method)]


def is_called(row: Reported, method: str) -> bool:
    """Whether a row is of a method.

    Args:
        row: the row.
        method: one of the method's names, in any case.
    """
    return method.casefold() in map(str.casefold, row.names)
