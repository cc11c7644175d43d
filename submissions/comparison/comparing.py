"""`compare`: paired differences of methods on one benchmark or suite, and which are more than chance."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_datasets.registry.averages import member_metric
from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CallError, UnknownNameError, did_you_mean
from cir_metrics.resampling import ALPHA, DRAWS, SEED, check_alpha, percentile_interval
from cir_metrics.significance import PairedTests, holm, paired_differences
from cir_metrics.sums import exact_means, exact_sums
from submissions.comparison.groups import Groups, leader_groups
from submissions.comparison.keys import check_comparable, check_same_order, shared_text
from submissions.comparison.result import ComparedMethod, Comparison, Difference, Flips, GroupTest, Pair
from submissions.formats.budget import MAX_BYTES
from submissions.scoring.further_metrics import metric_names
from submissions.scoring.intervals import Interval
from submissions.scoring.reference_use import reference_warnings
from submissions.scoring.samples import NO_MEANS, Sample, is_better, resampled_metrics
from submissions.scoring.score_report import ScoreReport

if TYPE_CHECKING:
    from cir_metrics.significance import PValue
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike

    Places = tuple[int, int]
    """Numbers of two methods."""


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
    Rank groups are a board's: down the order by the leading metric each method is tested against the leader
    of its group, under Holm's correction over these tests alone (`submissions.comparison.groups`). Oracles
    stand outside.

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
    check_alpha(alpha)
    wanted = None if metrics is None else metric_names(metrics)
    if wanted == ():
        raise CallError("metrics names nothing. Fix: name a metric, or leave it out for the board's.")
    reports = [
        each if isinstance(each, ScoreReport) else _score(each, benchmark, wanted or (), max_bytes)
        for each in files
    ]
    return _Comparing(reports, wanted, draws, seed, alpha).done()


def _score(file: FileLike, benchmark: BenchmarkLike, metrics: Sequence[str], max_bytes: int) -> ScoreReport:
    """The score of a file, by further metrics too where the board lacks one that is wanted."""
    from submissions.scoring import score

    report = score(file, benchmark, max_bytes=max_bytes)
    scored = {*resampled_metrics(report), *NO_MEANS}
    further = [member_metric(name) for name in metrics if name not in scored]
    return score(file, benchmark, metrics=further, max_bytes=max_bytes) if further else report


class _Comparing:
    """One comparison on its way from reports to the result."""

    def __init__(
        self,
        reports: Sequence[ScoreReport],
        metrics: Sequence[str] | None,
        draws: int,
        seed: int,
        alpha: float,
    ) -> None:
        self.reports, self.draws, self.seed, self.alpha = reports, draws, seed, alpha
        self.names = method_names(reports)
        self.metrics, self.notes = _compared(reports, metrics)
        self.samples = [Sample.behind(report) for report in reports]
        check_same_order(reports, self.samples)
        self.pairs = list(itertools.combinations(range(len(reports)), 2))
        main = reports[0].main_metric
        self.leading = main if main in self.metrics else self.metrics[0]

    def done(self) -> Comparison:
        differences = self._differences()
        by_pair = dict(zip(self.pairs, differences, strict=True))
        values = [_values(report, self.metrics) for report in self.reports]
        letters = [letter(place) for place in range(len(self.reports))]
        inside = [place for place, report in enumerate(self.reports) if not report.oracle]
        groups = self._groups(inside)
        methods = []
        for place, (name, report) in enumerate(zip(self.names, self.reports, strict=True)):
            beaten = {
                metric: tuple(
                    letters[other] for other in range(len(letters)) if _beats(by_pair, place, other, metric)
                )
                for metric in self.metrics
            }
            group, test = None, None
            if groups is not None and place in inside:
                group, test = _group(groups, inside.index(place), [letters[each] for each in inside])
            methods.append(
                ComparedMethod(name, report.file, letters[place], group, values[place], beaten, test)
            )
        first = self.reports[0]
        return Comparison(
            benchmark=first.benchmark,
            benchmark_version=first.benchmark_version,
            unit=self.samples[0].unit,
            n=first.n,
            leading=self.leading,
            metrics=tuple(self.metrics),
            methods=tuple(methods),
            pairs=tuple(
                Pair(self.names[one], self.names[other], found, self._flips((one, other)))
                for (one, other), found in by_pair.items()
            ),
            signatures={
                name: shared_text([report.signature_text(name) for report in self.reports])
                for name in self.metrics
                if name in first.signatures
            },
            draws=self.draws,
            seed=self.seed,
            alpha=self.alpha,
            notes=(*self.notes, *reference_warnings(self.reports), *self._too_few_draws(differences)),
        )

    def _differences(self) -> list[dict[str, Difference]]:
        """Every metric of every pair; the columns of all pairs share the draws."""
        sample = self.samples[0]
        parts = range(len(sample.parts))
        values = [[each.values(metric) for metric in self.metrics] for each in self.samples]
        columns = [
            np.stack(
                [
                    paired_differences(values[one][m][part], values[other][m][part])
                    for one, other in self.pairs
                    for m in range(len(self.metrics))
                ],
                axis=1,
            )
            for part in parts
        ]
        weights = np.tile(np.stack([sample.weights(m) for m in self.metrics], axis=1), len(self.pairs))
        drawn = sample.bootstrap(columns, weights, draws=self.draws, seed=self.seed)
        low, high = percentile_interval(drawn, 1 - self.alpha)
        means = exact_sums([weights[part] * exact_means(columns[part]) for part in parts])
        tests = self._tests()
        adjusted = holm(np.array([test.p for test in tests]))
        signs = np.sign(np.concatenate(columns))
        found = []
        for number, metric in enumerate(self.metrics * len(self.pairs)):
            better = signs[:, number] * (1 if is_better(metric, 1, 0) else -1)
            found.append(
                Difference(
                    metric=metric,
                    n=len(better),
                    difference=float(means[number]),
                    interval=Interval(float(low[number]), float(high[number])),
                    test=tests[number],
                    adjusted=float(adjusted[number]),
                    significant=bool(adjusted[number] <= self.alpha),
                    wins=int(np.count_nonzero(better > 0)),
                    ties=int(np.count_nonzero(better == 0)),
                    losses=int(np.count_nonzero(better < 0)),
                )
            )
        width = len(self.metrics)
        return [
            {each.metric: each for each in found[start : start + width]}
            for start in range(0, len(found), width)
        ]

    def _tests(self) -> list[PValue]:
        """The tests of every metric of every pair, on what each query adds to the two numbers."""
        joined = [sample.joined(metric) for metric in self.metrics for sample in self.samples]
        tests = PairedTests(
            np.stack(joined, axis=1), draws=self.draws, seed=self.seed, key=self.samples[0].of
        )
        # Of hits most tests are exact; all others are drawn at once.
        graded = [column for column, values in enumerate(joined) if len(np.unique(values)) > 2]
        width = len(self.samples)
        return [
            tests.test(metric * width + one, metric * width + other, ahead=graded)
            for one, other in self.pairs
            for metric in range(len(self.metrics))
        ]

    def _groups(self, inside: Sequence[int]) -> Groups | None:
        if not inside:
            return None
        return leader_groups(
            [self.samples[place].joined(self.leading) for place in inside],
            higher=is_better(self.leading, 1, 0),
            alpha=self.alpha,
            draws=self.draws,
            seed=self.seed,
            key=self.samples[0].of,
        )

    def _flips(self, pair: Places) -> tuple[Flips, ...]:
        from cir_datasets.registry.schema import main_metric_terms

        found = []
        ids = self.samples[0].query_ids()
        for term in main_metric_terms(self.leading):
            # A hit is a value above zero, but for a mean rank and a variant (behind a colon).
            if ":" in term or parse_metric(member_metric(term))[1] is None:
                continue
            one, other = (np.concatenate(self.samples[place].values(term)) > 0 for place in pair)
            found.append(Flips(term, _named(ids, one & ~other), _named(ids, other & ~one)))
        return tuple(found)

    def _too_few_draws(self, differences: list[dict[str, Difference]]) -> list[str]:
        tests = [each.test for found in differences for each in found.values()]
        needed = math.ceil(len(tests) / self.alpha) - 1
        if self.draws >= needed or all(test.exact for test in tests):
            return []
        note = (
            f"With {self.draws:,} draws, a sampled p-value is never small enough for the first of "
            f"{len(tests):,} tests. Fix: use {needed:,} draws or more."
        )
        return [note]


def method_names(reports: Sequence[ScoreReport]) -> list[str]:
    """Names that tell the methods apart: with the file where a name is taken twice, else numbered.

    Args:
        reports: of the methods.

    Returns:
        A name a report, such as `CLIP sum` or, for two of that name, `CLIP sum (a.json)`; `#1` and on stand
        behind the names of a file that is given twice.
    """
    names = [report.method for report in reports]
    for label in (lambda report: PurePath(report.file).name, lambda report: report.file):
        names = [
            f"{report.method} ({label(report)})" if names.count(name) > 1 else name
            for name, report in zip(names, reports, strict=True)
        ]
    seen: dict[str, int] = {}
    labels = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        labels.append(f"{name} #{seen[name]}" if names.count(name) > 1 else name)
    return labels


def _compared(reports: Sequence[ScoreReport], wanted: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Names of what is compared, and what is to be said about those that are not."""
    listed = [resampled_metrics(report) for report in reports]
    common = [name for name in listed[0] if all(name in each for each in listed)]
    check_comparable(reports, [name for name in common if name in reports[0].signatures])
    if wanted is not None:
        for name in wanted:
            if name not in common:
                raise _not_compared(name, reports, listed, common)
        return list(dict.fromkeys(wanted)), []
    board = [name for name in common if name not in reports[0].extra]
    absent = [name for each in listed for name in each if name not in common]
    return board, [
        f"Not compared, because not all files were scored by it: {name}." for name in dict.fromkeys(absent)
    ]


def _not_compared(
    name: str, reports: Sequence[ScoreReport], listed: Sequence[Sequence[str]], common: Sequence[str]
) -> CallError:
    """The error for a metric that not all files have a value of."""
    from cir_datasets.registry.schema import main_metric_terms

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


def _values(report: ScoreReport, metrics: Sequence[str]) -> dict[str, float]:
    scores = {report.main_metric: report.main, **report.metrics, **report.extra}
    return {name: value for name in metrics if (value := scores[name]) is not None}


def _group(groups: Groups, place: int, letters: Sequence[str]) -> tuple[int, GroupTest | None]:
    above, p, adjusted = groups.against[place], groups.p[place], groups.adjusted[place]
    if above is None or p is None or adjusted is None:
        return groups.group[place], None
    return groups.group[place], GroupTest(letters[above], p, adjusted)


def _beats(by_pair: dict[Places, dict[str, Difference]], one: int, other: int, metric: str) -> bool:
    if one == other:
        return False
    found = by_pair[min(one, other), max(one, other)][metric]
    first_is_better = is_better(metric, found.difference, 0)
    return found.significant and first_is_better == (one < other)


def letter(place: int) -> str:
    """`a` to `z`, then `aa`, `ab` and on, as columns of a spreadsheet."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _named(ids: Sequence[tuple[str, str]], flagged: NDArray[np.bool_]) -> tuple[tuple[str, str], ...]:
    return tuple(ids[place] for place in np.flatnonzero(flagged).tolist())
