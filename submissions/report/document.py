"""`Report`: a score with everything that belongs beside it, as tables, as text and as a picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.tables import Cell, Table, render_or_json
from cir_datasets.registry.schema import main_metric_terms
from submissions.report.floors import FLOOR_NAMES
from submissions.report.values import ReportValues
from submissions.scoring.score_report import main_value, shown_value

if TYPE_CHECKING:
    from submissions.report.grouping import Grouping


class Report(ReportValues):
    """Everything about one score, as it is shown."""

    def tables(self) -> tuple[Table, ...]:
        """Scores beside chance and baselines, counts, then the groups; a suite's members side by side."""
        return report_tables(self)

    def render(self, format: str = "table") -> str:
        """The report in one of `cir_datasets.common.tables.FORMATS`, without a line feed at the end.

        Args:
            format: `table`, `json` (fractions, all fields), `csv` (long form), `latex` or `markdown`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)

    def plot(self, path: str | Path) -> Path:
        """Draw the report into a .png or .svg file; see `submissions.report.plots.write_plot`."""
        from submissions.report.plots import write_plot

        return write_plot(self, path)


def report_tables(report: ReportValues) -> tuple[Table, ...]:
    """All tables of a report; see `Report.tables`."""
    own = [_scores(report)]
    if report.members:
        own.append(_members(report))
    own.append(_counts(report))
    own += [_grouping(grouping) for grouping in report.groupings.values()]
    for member in report.members:
        for grouping in member.groupings.values():
            table = _grouping(grouping)
            own.append(dataclasses.replace(table, title=f"{member.score.benchmark}: {table.title.lower()}"))
    return tuple(own)


def _scores(report: ReportValues) -> Table:
    score = report.score
    answered = f"{score.n:,}" if score.answered == score.n else f"{score.answered:,} of {score.n:,}"
    floors = [name for name in FLOOR_NAMES if name in report.floors]
    expression = f"main: {score.main_metric}"
    lines = [
        (name, name, [value, *(report.floors[each].get(name) for each in floors)])
        for name, value in report.values().items()
    ]
    main = [score.main, *(main_value(score.main_metric, report.floors[each]) for each in floors)]
    rows = []
    has_main = {*report.values(), *score.missing_metrics} >= {*main_metric_terms(score.main_metric)}
    if has_main:  # a selection of metrics may leave a part of it out
        lines.append((expression, score.main_metric, main))
    for shown, metric, values in lines:
        first, *others = _cells(metric, values)
        rows.append((Cell(shown), first, *_interval(report, metric), *others))
    notes = [] if report.intervals is None else [report.intervals.note()]
    return Table(
        title=f"{score.method} on {score.benchmark}#{score.benchmark_version}, {answered} answered",
        columns=("metric", "score", *_interval_heads(report), *(FLOOR_NAMES[name] for name in floors)),
        rows=tuple(rows),
        notes=(
            *notes,
            *report.notes,
            *_signature_notes({name: str(each) for name, each in report.signatures.items()}),
        ),
    )


def _interval_heads(report: ReportValues) -> tuple[str, ...]:
    return () if report.intervals is None else ("low", "high")


def _interval(report: ReportValues, metric: str) -> list[Cell]:
    if report.intervals is None:
        return []
    found = report.intervals.values.get(metric)
    return _cells(metric, [None, None] if found is None else [found.low, found.high])


def _cells(metric: str, values: Iterable[float | None]) -> list[Cell]:
    return [Cell(shown_value(metric, value).strip(), value) for value in values]


def _signature_notes(texts: Mapping[str, str]) -> list[str]:
    """Metrics with the same signature share a note."""
    together: dict[str, list[str]] = {}
    for name, text in texts.items():
        together.setdefault(text, []).append(name)
    if len(together) == 1:
        return [f"signature: {text}" for text in together]
    return [f"signature of {', '.join(names)}: {text}" for text, names in together.items()]


def _members(report: ReportValues) -> Table:
    """A suite's members side by side, then their macro and micro means."""
    metrics = list(dict.fromkeys(name for member in report.members for name in member.values()))
    with_random = [
        name
        for name in metrics
        if any(member.floors.get("random", {}).get(name) for member in report.members)
    ]
    rows = []
    for member in report.members:
        floor = member.floors.get("random", {})
        cells = _pairs(metrics, with_random, member.values(), floor)
        rows.append((Cell(member.score.benchmark), _count(member.score.n), *cells))
    for group in report.means:
        cells = _pairs(metrics, with_random, group.values, group.random)
        rows.append((Cell(group.name), _count(group.n), *cells))
    one = "session" if report.unit == "sessions" else "query"
    notes = [
        f"macro: every benchmark weighs the same; micro: every {one} does (- where there is no such mean)."
    ]
    notes += [f"{member.score.benchmark}: {note}" for member in report.members for note in member.notes]
    for member in report.members:
        texts = {name: str(signature) for name, signature in member.signatures.items()}
        notes += _signature_notes(texts)
    columns = ("benchmark", report.unit, *_heads(metrics, with_random))
    return Table("By benchmark", columns, tuple(rows), tuple(notes))


def _counts(report: ReportValues) -> Table:
    names = list(report.counts)
    row = (Cell(report.score.benchmark), *(_count(report.counts[name]) for name in names))
    return Table("Counts", ("benchmark", *(name.replace("_", " ") for name in names)), (row,))


def _grouping(grouping: Grouping) -> Table:
    everyone = (*grouping.groups, *grouping.means)
    metrics = list(dict.fromkeys(name for group in everyone for name in group.values))
    with_random = [name for name in metrics if any(name in group.random for group in everyone)]
    rows = tuple(
        (
            Cell(group.name, group.key if isinstance(group.key, int) else None),
            _count(group.n),
            *_pairs(metrics, with_random, group.values, group.random),
        )
        for group in everyone
    )
    columns = (grouping.head, grouping.counted, *_heads(metrics, with_random))
    return Table(grouping.title, columns, rows, grouping.notes)


def _heads(metrics: Sequence[str], with_random: Sequence[str]) -> list[str]:
    return [
        head for name in metrics for head in (name, *((f"{name} random",) if name in with_random else ()))
    ]


def _pairs(
    metrics: Sequence[str],
    with_random: Sequence[str],
    values: Mapping[str, float | None],
    random: Mapping[str, float | None],
) -> list[Cell]:
    """A metric's value and, where it is known for some row, what a random order is expected to get."""
    cells: list[Cell] = []
    for name in metrics:
        cells += _cells(name, [values.get(name)])
        if name in with_random:
            cells += _cells(name, [random.get(name)])
    return cells


def _count(value: int | None) -> Cell:
    return Cell("-" if value is None else f"{value:,}", value)
