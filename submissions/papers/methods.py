"""From files to methods: each method's score on the one benchmark or suite that a table is of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cir_datasets.registry import members_of
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import suite
from cir_metrics.errors import CallError, did_you_mean
from submissions.comparison.keys import check_comparable
from submissions.errors import ComparisonError
from submissions.papers.layout import Layout, TableLayout, layout_of
from submissions.scoring import score
from submissions.scoring.score_report import ScoreReport, renamed
from submissions.scoring.suites import suite_report

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike


def scored_methods(
    files: Sequence[FileLike | ScoreReport],
    layout: Layout,
    benchmark: BenchmarkLike,
    names: Mapping[str, str],
    *,
    with_published: bool,
    max_bytes: int,
) -> list[ScoreReport]:
    """One score a method, all on the same benchmark or suite.

    Args:
        files: rank files, bundles or scores; those of a suite's members are joined by the method's name.
        layout: what the table looks like.
        benchmark: as in `score`.
        names: by file the method's name that is printed.
        with_published: whether the columns that go with published rows are wanted.
        max_bytes: bytes that are read of each file at most.

    Raises:
        CallError: a file is of another benchmark, a method lacks a member or has one twice, or two are of
            one name.
        ComparisonError: the files are of different protocols, or their comparability keys differ.
    """
    reports = [_scored(each, layout, benchmark, with_published, max_bytes) for each in files]
    for report in reports:
        _check_asked(report, layout)
    reports = renamed(reports, names)
    asked = list(dict.fromkeys(report.benchmark for report in reports))
    whole = _target(reports, asked, layout)
    methods = _joined(reports, whole) if whole in layout.suites else reports
    seen: dict[str, ScoreReport] = {}
    for report in methods:
        if report.method in seen:
            raise _one_name(seen[report.method], report)
        seen[report.method] = report
    check_comparable(methods, apart_by=("ref",))
    return methods


def _scored(
    file: FileLike | ScoreReport,
    layout: Layout,
    benchmark: BenchmarkLike,
    with_published: bool,
    max_bytes: int,
) -> ScoreReport:
    if isinstance(file, ScoreReport):
        return file
    report = score(file, benchmark, max_bytes=max_bytes)
    wanted = [
        term
        for table in layout.tables
        if report.benchmark in table.answers
        for term in _terms(table, with_published)
    ]
    known = {*report.metrics, *report.extra, *report.missing_metrics}
    further = [name for name in dict.fromkeys(wanted) if name not in known]
    return score(file, benchmark, metrics=further, max_bytes=max_bytes) if further else report


def _terms(table: TableLayout, with_published: bool) -> list[str]:
    """The metrics that a table's own columns are made of; those by turn come with the board's."""
    groups = [
        group for group in table.columns if not group.of and (with_published or not group.only_with_published)
    ]
    metrics = [metric.partition(" of ")[0] for group in groups for metric in group.by_metric]
    return [term for metric in metrics for term in main_metric_terms(metric)]


def _check_asked(report: ScoreReport, layout: Layout) -> None:
    if layout.takes(report.benchmark):
        return
    fitting = layout_of(report.benchmark)
    fix = f"use --for {fitting}" if fitting else "leave the file out"
    raise CallError(
        f"{report.file}: it answers {report.benchmark}; a table for {layout.name} is made of "
        f"{', '.join(layout.answers)}. Fix: {fix}."
    )


def _target(reports: Sequence[ScoreReport], asked: Sequence[str], layout: Layout) -> str:
    """The benchmark or suite that the table is of."""
    if len(asked) == 1 and asked[0] in layout.answers:
        return asked[0]
    wholes = [{name, *members_of(name)} for name in layout.suites]
    fitting = [each for each in zip(layout.suites, wholes, strict=True) if each[1].issuperset(asked)]
    if fitting:
        # Where one suite holds another, the smallest that has them all: it lacks the fewest members.
        return min(fitting, key=lambda each: len(each[1]))[0]
    first = reports[0]
    other = next(
        report
        for report in reports
        if report.benchmark != first.benchmark
        and not any(whole.issuperset([first.benchmark, report.benchmark]) for whole in wholes)
    )
    raise ComparisonError(
        f"{first.file} and {other.file} cannot stand in one table: they answer {first.benchmark} and "
        f"{other.benchmark}, which are two protocols. Fix: make a table of each."
    )


def _joined(reports: Sequence[ScoreReport], whole: str) -> list[ScoreReport]:
    """The methods' scores over the suite, in the order in which they are first named."""
    by_method: dict[str, list[ScoreReport]] = {}
    for report in reports:
        by_method.setdefault(report.method, []).append(report)
    return [_over_suite(method, own, whole, by_method) for method, own in by_method.items()]


def _over_suite(
    method: str, own: Sequence[ScoreReport], whole: str, by_method: Mapping[str, Sequence[ScoreReport]]
) -> ScoreReport:
    held: dict[str, ScoreReport] = {}
    for report in own:
        for run in report.parts:
            if run.benchmark in held:
                raise _one_name(held[run.benchmark], dataclasses.replace(run, file=report.file))
            held[run.benchmark] = dataclasses.replace(run, method=method, file=report.file)
    missing = [str(misfit.name) for misfit in suite(whole).fit(list(held))]
    if missing:
        files = ", ".join(report.file for report in own)
        others = [name for name, theirs in by_method.items() if _answered(theirs) == sorted(missing)]
        fix = f"hand in a file for {missing[0]} whose method is named so"
        if others:
            asked = " ".join(f"--name {report.file}={others[0]!r}" for report in own)
            fix += f", or join these to another method with {asked}"
        raise CallError(
            f"method {method!r} ({files}) has no file for {', '.join(missing)}."
            f"{did_you_mean(method, others)} Fix: {fix}."
        )
    if len(own) == 1 and own[0].runs:
        return own[0]
    return suite_report(
        whole, [held[member] for member in members_of(whole)], file=" + ".join(each.file for each in own)
    )


def _answered(reports: Sequence[ScoreReport]) -> list[str]:
    """The benchmarks that a method's files answer, sorted; one that is answered twice stands there twice."""
    return sorted(run.benchmark for report in reports for run in report.parts)


def _one_name(first: ScoreReport, second: ScoreReport) -> CallError:
    if first.file == second.file:
        return CallError(
            f"{second.file}: {second.benchmark} of method {second.method!r} is there twice. "
            "Fix: name the file once."
        )
    return CallError(
        f"{first.file} and {second.file} are both of method {second.method!r} and both answer "
        f"{second.benchmark}. Fix: leave one out, or print another name with --name {second.file}=NAME."
    )
