"""A report of some of its metrics, as `cir score --metric` prints it, of rankings and of dialogues."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from cir_datasets.registry.schema import member_metric
from cir_metrics.errors import CallError
from submissions.report import Report
from submissions.report.grouping import Group
from submissions.scoring.further_metrics import Further, metric_names, parse_further

Value = TypeVar("Value")


def selected(report: Report, metrics: Sequence[str]) -> Report:
    """The report with these metrics alone: in tables, groups, signatures, chance, baselines and intervals.

    The main metric's row stays where all that it is made of is selected.

    Args:
        report: of a score that was given the same names.
        metrics: printed names; one without a turn also stands for its values at each turn.

    Raises:
        UnknownNameError: no metric has that name.
        CallError: a cutoff or variant is wrong, or the file gives no value of any of them.

    Example:
        >>> from submissions import make_rank_file, score
        >>> from submissions.report import full_report
        >>> scored = score(make_rank_file("shapes/val", "random"), metrics=["recall@5"])
        >>> list(selected(full_report(scored), ["recall@5", "recall@10"]).values())
        ['recall@5', 'recall@10']
    """
    wanted = parse_further(metric_names(metrics))
    found = _cut(report, lambda name: any(_is_of(name, each) for each in wanted))
    if not found.values():
        raise CallError(
            f"{', '.join(metrics)}: {report.score.file} gives no such value. "
            f"Fix: choose among {', '.join(report.values())}."
        )
    return found


def _is_of(name: str, wanted: Further) -> bool:
    own = member_metric(name)
    turns = wanted.turn is None and own.startswith(f"{wanted.printed}@turn") and own.endswith(wanted.suffix)
    return own == wanted.name or turns


def _cut(report: Report, keep: Callable[[str], bool]) -> Report:
    def of(values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: value for name, value in values.items() if keep(name)}

    def group(one: Group) -> Group:
        return dataclasses.replace(one, values=of(one.values), random=of(one.random))

    groupings = {}
    for name, grouping in report.groupings.items():
        groups, means = tuple(map(group, grouping.groups)), tuple(map(group, grouping.means))
        if any(each.values for each in groups):
            groupings[name] = dataclasses.replace(grouping, groups=groups, means=means)
    scored = report.score
    rows = scored.per_query
    if rows is not None:
        dropped = {name for name in (*scored.metrics, *scored.extra) if not keep(name)}
        rows = [{name: value for name, value in row.items() if name not in dropped} for row in rows]
    return dataclasses.replace(
        report,
        score=dataclasses.replace(
            scored,
            metrics=of(scored.metrics),
            extra=of(scored.extra),
            signatures=of(scored.signatures),
            per_query=rows,
        ),
        floors={name: of(values) for name, values in report.floors.items()},
        groupings=groupings,
        members=tuple(_cut(member, keep) for member in report.members),
        means=tuple(map(group, report.means)),
        intervals=None
        if report.intervals is None
        else dataclasses.replace(report.intervals, values=of(report.intervals.values)),
    )
