"""The columns of one table: what each shows, of whom, and a method's number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cir_datasets.registry.schema import main_metric_terms
from submissions.papers.layout import ColumnGroup, TableLayout
from submissions.report import full_report
from submissions.scoring.score_report import ScoreReport, main_value


@dataclass(frozen=True)
class PaperColumn:
    """One column.

    Args:
        span: the head above its head, or empty.
        head: its own head.
        of: name of the suite's member that it is of, or empty.
        metric: a metric, a mean of several, or `<metric> of <aspect>`.
    """

    span: str
    head: str
    of: str
    metric: str

    @property
    def name(self) -> str:
        """Both heads."""
        return f"{self.span} {self.head}".strip()

    @property
    def aspect(self) -> tuple[str, str] | None:
        """Metric and aspect of a column by aspect."""
        metric, found, aspect = self.metric.partition(" of ")
        return (metric, aspect) if found else None


def columns_of(
    table: TableLayout, methods: Sequence[ScoreReport], *, with_published: bool
) -> list[PaperColumn]:
    """A table's columns.

    Args:
        table: its layout.
        methods: scores on what the table is of; they say how many turns there are.
        with_published: whether the columns that go with published rows are wanted.
    """
    groups = [each for each in table.columns if with_published or not each.only_with_published]
    return [
        PaperColumn(each.span, head, each.of, metric)
        for each in groups
        for metric, head in _heads(each, methods).items()
    ]


def _heads(group: ColumnGroup, methods: Sequence[ScoreReport]) -> dict[str, str]:
    if group.by_turn:
        prefix = f"{group.by_turn}@turn"
        turns = [name for name in (methods[0].metrics if methods else ()) if name.startswith(prefix)]
        return {name: f"{group.head} {name.removeprefix(prefix)}".strip() for name in turns}
    if group.by_aspect:
        return {f"{group.by_aspect} of {aspect}": head for aspect, head in group.heads.items()}
    return dict(group.heads)


def value_of(report: ScoreReport, column: PaperColumn) -> float | None:
    """A method's number in a column, a fraction; None where its file holds no rankings for it."""
    if column.aspect is not None:
        metric, aspect = column.aspect
        grouping = full_report(report).groupings.get("by_aspect")
        groups = () if grouping is None else grouping.groups
        return next((group.values.get(metric) for group in groups if group.key == aspect), None)
    known = {**report.metrics, **report.extra}
    if len(main_metric_terms(column.metric)) > 1:
        return main_value(column.metric, known)
    return known.get(column.metric)
