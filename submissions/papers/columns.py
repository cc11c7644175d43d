"""The columns of one table: what each shows, of whom, and the methods' numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        benchmark: id of what it is of.
        scores: the methods' scores on that.
    """

    span: str
    head: str
    of: str
    metric: str
    benchmark: str
    scores: tuple[ScoreReport, ...]

    @property
    def name(self) -> str:
        """Both heads."""
        return f"{self.span} {self.head}".strip()

    def values(self) -> list[float | None]:
        """The methods' numbers, fractions; None where a file holds no rankings for it."""
        metric, _, aspect = self.metric.partition(" of ")
        if aspect:
            return [_of_aspect(score, metric, aspect) for score in self.scores]
        return [main_value(metric, {**score.metrics, **score.extra}) for score in self.scores]


def columns_of(
    table: TableLayout, target: str, methods: Sequence[ScoreReport], *, with_published: bool
) -> list[PaperColumn]:
    """A table's columns.

    Args:
        table: its layout.
        target: the benchmark or suite that it is of.
        methods: scores on that; they say how many turns there are.
        with_published: whether the columns that go with published rows are wanted.
    """
    columns = []
    for group in table.columns:
        benchmark = table.benchmark_of(target, group.of)
        scores = tuple(
            next(score for score in (method, *method.runs) if score.benchmark == benchmark)
            for method in methods
        )
        if with_published or not group.only_with_published:
            heads = _turns(group, methods) if group.by_turn else group.by_metric
            columns += [
                PaperColumn(group.span, head, group.of, metric, benchmark, scores)
                for metric, head in heads.items()
            ]
    return columns


def _turns(group: ColumnGroup, methods: Sequence[ScoreReport]) -> dict[str, str]:
    prefix = f"{group.by_turn}@turn"
    turns = [name for name in (methods[0].metrics if methods else ()) if name.startswith(prefix)]
    return {name: f"{group.head} {name.removeprefix(prefix)}".strip() for name in turns}


def _of_aspect(score: ScoreReport, metric: str, aspect: str) -> float | None:
    grouping = full_report(score).groupings.get("by_aspect")
    groups = () if grouping is None else grouping.groups
    return next((group.values.get(metric) for group in groups if group.key == aspect), None)
