"""`compare`: paired differences of methods on one benchmark or suite, and which are more than chance."""

from __future__ import annotations

import itertools
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.registry.schema import main_metric_terms, member_metric
from cir_metrics.catalogue import NO_MEANS, parse_metric
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from cir_metrics.resampling import ALPHA, DRAWS, SEED, bootstrapped_means, check_share, percentile_interval
from cir_metrics.significance import PairedTests, holm, paired_differences
from cir_metrics.sums import exact_means, exact_sums
from submissions.comparison.difference import Difference, Flips, Pair
from submissions.comparison.groups import GroupTest, leader_groups
from submissions.comparison.keys import check_comparable, samples_in_order, shared_text
from submissions.comparison.result import ComparedMethod, Comparison
from submissions.rank_file.content import MAX_BYTES
from submissions.report.side_by_side import distinct_labels
from submissions.scoring.further_metrics import metric_names
from submissions.scoring.intervals import Interval
from submissions.scoring.reference_use import reference_warnings
from submissions.scoring.samples import Sample, is_better, resampled_metrics
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from cir_metrics.significance import PValue
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

Places = tuple[int, int]
"""Numbers of two methods, the first one's in front."""


def compare(
    files: Sequence[FileLike | ScoreReport],
    benchmark: BenchmarkLike = None,
    *,
    metrics: Sequence[str] | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
    alpha: float = ALPHA,
    max_bytes: int = MAX_BYTES,
) -> Comparison:
    """Compare methods by their rank files, pair by pair and metric by metric.

    For each pair and metric: the difference, its paired bootstrap interval, a two-sided paired randomisation
    test, and on how many queries which method is better. Holm's correction covers all these tests, metrics
    times pairs, as one family. Queries or sessions are resampled, never turns; all files share the draws.
    Rank groups are a board's, by the leading metric (`submissions.comparison.groups`); oracles have none.

    Args:
        files: two or more rank files or bundles, or reports of `submissions.score`.
        benchmark: what the files answer, as in `score`.
        metrics: names of what to compare, of the board or as `score` takes further ones; default: the board's
            metrics, and the main metric where it is a mean of several. `median_rank` and `censored` are no
            means over queries and are not compared.
        draws: draws of the bootstrap, and changes of sign of tests that are not exact; 1 or more.
        seed: 0 or more.
        alpha: level of significance, above 0 and below 1; intervals hold 1 - alpha.
        max_bytes: bytes that are read of each file at most.

    Returns:
        The comparison; its numbers are fractions.

    Raises:
        CallError: there are fewer than two files, `metrics` is empty or no list, one of them needs rankings
            that a file does not hold, or a report holds no values per query.
        ComparisonError: the comparability keys of two files differ; the message says which part.
        UnknownNameError: a metric that the files were not scored by.
        RefusedError: validation found errors in a file.
        WithheldError: the benchmark's ground truth is not public.
        MissingFileError: no file has that name.
        SettingError: draws, seed or alpha are out of range.

    Example:
        >>> from submissions import make_rank_file
        >>> names = ("image_text_sum_pixels", "random")
        >>> files = [make_rank_file("shapes/val", name) for name in names]
        >>> found = compare(files, draws=1000)
        >>> [(method.name, method.group) for method in found.methods]
        [('Image + text, sum', 1), ('Random', 2)]
    """
    if isinstance(files, str | bytes | os.PathLike) or len(files) < 2:
        raise CallError("a comparison needs two rank files or more. Fix: name another one.")
    check_share(alpha, "alpha", "a level of significance", ALPHA)
    wanted = None if metrics is None else metric_names(metrics)
    if wanted == ():
        raise CallError("metrics names nothing. Fix: name a metric, or leave it out for the board's.")
    reports = [
        file if isinstance(file, ScoreReport) else _score(file, benchmark, wanted or (), max_bytes)
        for file in files
    ]
    compared, notes = _compared(reports, wanted)
    notes += reference_warnings(reports)
    return comparison_of(reports, compared, notes, draws=draws, seed=seed, alpha=alpha)


def comparison_of(
    reports: Sequence[ScoreReport],
    compared: Sequence[str],
    notes: Sequence[str],
    *,
    draws: int,
    seed: int,
    alpha: float,
) -> Comparison:
    """Differences, tests and groups of reports whose values stand for the same queries in the same order.

    Args:
        reports: two or more, which hold values per query of each metric.
        compared: names of these metrics.
        notes: what a reader must know beside.
        draws: as for `compare`, like the following.
        seed: of the draws.
        alpha: level of significance.
    """
    notes = [*notes]
    samples = samples_in_order(reports)
    first = reports[0]
    leading = first.main_metric if first.main_metric in compared else compared[0]
    how: dict[str, Any] = {"draws": draws, "seed": seed, "alpha": alpha}
    differences = _differences(samples, compared, **how)
    methods = _methods(reports, samples, leading, differences, **how)
    names = [method.name for method in methods]
    tests = [each.test for by_metric in differences.values() for each in by_metric.values()]
    needed = math.ceil(len(tests) / alpha) - 1
    if draws < needed and not all(test.exact for test in tests):
        notes.append(
            f"With {draws:,} draws, a sampled p-value is never small enough for the first of "
            f"{len(tests):,} tests. Fix: use {needed:,} draws or more."
        )
    return Comparison(
        benchmark=first.benchmark,
        benchmark_version=first.benchmark_version,
        unit=samples[0].unit,
        n=first.n,
        leading=leading,
        metrics=tuple(compared),
        methods=methods,
        pairs=tuple(
            Pair(names[one], names[other], by_metric, _flips(leading, samples[one], samples[other]))
            for (one, other), by_metric in differences.items()
        ),
        signatures={
            name: shared_text([report.signature_text(name) for report in reports])
            for name in compared
            if name in first.signatures
        },
        **how,
        notes=tuple(notes),
    )


def _score(file: FileLike, benchmark: BenchmarkLike, metrics: Sequence[str], max_bytes: int) -> ScoreReport:
    """The score of a file, by further metrics too where the board lacks one that is wanted."""
    from submissions.scoring import score

    report = score(file, benchmark, max_bytes=max_bytes)
    scored = {*resampled_metrics(report), *NO_MEANS}
    further = [member_metric(name) for name in metrics if name not in scored]
    return score(file, benchmark, metrics=further, max_bytes=max_bytes) if further else report


def pair_tests(
    samples: Sequence[Sample], metrics: Sequence[str], *, draws: int, seed: int
) -> dict[tuple[Places, str], PValue]:
    """The randomisation test of each pair of methods by each metric, on what each query adds to the numbers.

    The samples hold the same queries in the same order, and the metrics are means over them.
    """
    joined = [sample.joined(metric) for metric in metrics for sample in samples]
    tests = PairedTests(np.stack(joined, axis=1), draws=draws, seed=seed, key=samples[0].of)
    # Of hits most tests are exact; all others are drawn at once.
    graded = [column for column, values in enumerate(joined) if len(np.unique(values)) > 2]
    starts = dict(zip(metrics, range(0, len(joined), len(samples)), strict=True))
    return {
        ((one, other), metric): tests.test(start + one, start + other, ahead=graded)
        for one, other in itertools.combinations(range(len(samples)), 2)
        for metric, start in starts.items()
    }


def _differences(
    samples: Sequence[Sample], metrics: Sequence[str], *, draws: int, seed: int, alpha: float
) -> dict[Places, dict[str, Difference]]:
    """Every metric of every pair; the columns of all pairs share the draws."""
    tests = pair_tests(samples, metrics, draws=draws, seed=seed)
    values = [{metric: sample.values(metric) for metric in metrics} for sample in samples]
    columns = [
        np.stack(
            [
                paired_differences(values[one][metric][part], values[other][metric][part])
                for (one, other), metric in tests
            ],
            axis=1,
        )
        for part in range(len(samples[0].parts))
    ]
    shares = {metric: samples[0].weights(metric) for metric in metrics}
    weights = np.stack([shares[metric] for _, metric in tests], axis=1)
    drawn = bootstrapped_means(samples[0].benchmarks, columns, weights, draws=draws, seed=seed)
    low, high = (ends.tolist() for ends in percentile_interval(drawn, 1 - alpha))
    means = exact_sums([share * exact_means(part) for share, part in zip(weights, columns, strict=True)])
    adjusted = holm([test.p for test in tests.values()]).tolist()
    signs = np.sign(np.concatenate(columns))
    differences: dict[Places, dict[str, Difference]] = defaultdict(dict)
    for number, ((pair, metric), test) in enumerate(tests.items()):
        better = 1 if is_better(metric, 1, 0) else -1
        wins, losses = (int(np.count_nonzero(signs[:, number] == sign)) for sign in (better, -better))
        differences[pair][metric] = Difference(
            metric=metric,
            n=len(signs),
            difference=float(means[number]),
            interval=Interval(low[number], high[number]),
            test=test,
            adjusted=adjusted[number],
            significant=adjusted[number] <= alpha,
            wins=wins,
            ties=len(signs) - wins - losses,
            losses=losses,
        )
    return differences


def _methods(
    reports: Sequence[ScoreReport],
    samples: Sequence[Sample],
    leading: str,
    differences: Mapping[Places, Mapping[str, Difference]],
    **how: Any,
) -> tuple[ComparedMethod, ...]:
    """The methods with those that each is better than, and the rank groups of all but oracles."""
    metrics = list(differences[0, 1])
    beats: list[dict[str, tuple[str, ...]]] = [dict.fromkeys(metrics, ()) for _ in reports]
    for (one, other), by_metric in differences.items():
        for metric, difference in by_metric.items():
            if difference.significant:
                winner, loser = (one, other) if difference.first_is_better else (other, one)
                beats[winner][metric] += (letter(loser),)
    groups: dict[int, tuple[int, GroupTest | None]] = {}
    ranked = [place for place, report in enumerate(reports) if not report.oracle]
    if ranked:
        joined = [samples[place].joined(leading) for place in ranked]
        found = leader_groups(joined, higher=is_better(leading, 1, 0), key=samples[0].of, **how)
        for place, number, test in zip(ranked, found.group, found.decided, strict=True):
            groups[place] = number, test and replace(test, against=ranked[test.against])
    methods = []
    names = distinct_labels([report.method for report in reports], [report.file for report in reports])
    for place, (name, report) in enumerate(zip(names, reports, strict=True)):
        scores = {report.main_metric: report.main, **report.metrics, **report.extra}
        values = {metric: value for metric in metrics if (value := scores[metric]) is not None}
        group, test = groups.get(place, (None, None))
        methods.append(ComparedMethod(name, report.file, letter(place), group, values, beats[place], test))
    return tuple(methods)


def _flips(leading: str, one: Sample, other: Sample) -> tuple[Flips, ...]:
    flips = []
    ids = one.query_ids()
    for term in main_metric_terms(leading):
        # A hit is a value above zero, but for a mean rank and a variant (behind a colon).
        if ":" in term or parse_metric(member_metric(term))[1] is None:
            continue
        first, second = (np.concatenate(sample.values(term)) > 0 for sample in (one, other))
        changes = (first & ~second, second & ~first)
        flips.append(Flips(term, *(tuple(itertools.compress(ids, changed)) for changed in changes)))
    return tuple(flips)


def _compared(reports: Sequence[ScoreReport], wanted: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Names of what is compared, and what is to be said about those that are not."""
    listed = [resampled_metrics(report) for report in reports]
    common = [name for name in listed[0] if all(name in each for each in listed)]
    check_comparable(reports)
    if wanted is not None:
        by_name = {
            name: [one for one in common if name in {one, one.partition("@turn")[0]}] for name in wanted
        }
        for name, names in by_name.items():
            if not names:
                raise _not_compared(name, reports, listed, common)
        return list(dict.fromkeys(itertools.chain.from_iterable(by_name.values()))), []
    board = [name for name in common if name not in reports[0].extra]
    absent = dict.fromkeys(name for each in listed for name in each if name not in common)
    return board, [f"Not compared, because not all files were scored by it: {name}." for name in absent]


def _not_compared(
    name: str, reports: Sequence[ScoreReport], listed: Sequence[Sequence[str]], common: Sequence[str]
) -> CallError:
    """The error for a metric that not all files have a value of."""
    for report, own in zip(reports, listed, strict=True):
        absent = [term for term in main_metric_terms(name) if member_metric(term) in report.missing_metrics]
        if name not in own and absent:
            return CallError(
                f"metric {name}: {report.file} holds no rankings for {absent[0]}. "
                "Fix: leave the metric out, or hand in a file with these rankings."
            )
        if name not in own and any(name in each for each in listed):
            return CallError(
                f"metric {name}: {report.file} was not scored by it. "
                "Fix: score all files by the same further metrics."
            )
    return UnknownNameError(
        f"no metric {name!r} to compare.{did_you_mean(name, common)} Fix: use one of {', '.join(common)}."
    )


def letter(place: int) -> str:
    """`a` to `z`, then `aa`, `ab` and on, as columns of a spreadsheet."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
