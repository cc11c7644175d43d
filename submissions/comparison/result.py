"""What a comparison found: methods, differences of pairs, flips; as values, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.common.counts import counted
from cir_datasets.common.tables import Cell, Table, render_or_json
from cir_metrics.resampling import ALPHA
from cir_metrics.significance import PValue
from submissions.scoring.intervals import METHOD, Interval
from submissions.scoring.samples import is_better
from submissions.scoring.score_report import is_rank, shown_value, signed

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from submissions.comparison.plot import Row

FIRST_FLIPS = 5
"""Ids of flipped queries that JSON shows in each direction; the file of flips has all."""
_SMALLEST = 0.0001
"""P-values below this are shown as such."""


@dataclass(frozen=True)
class GroupTest:
    """The test that decided a method's rank group.

    Args:
        against: letter of the method that it was tested against: the leader of its group, or of the group
            above where it leads its own.
        p: of the test.
        adjusted: the same by Holm's correction over the group tests, one a method but the best.
    """

    against: str
    p: float
    adjusted: float


@dataclass(frozen=True)
class ComparedMethod:
    """One of the methods.

    Args:
        name: its name, with the file's where another method has the same.
        file: the file's name.
        letter: what stands for it in superscripts: `a` for the first file, and so on.
        group: its rank group by the leading metric, from 1; None for an oracle.
        values: by metric name the numbers, fractions (`mean_rank`: a rank).
        beats: by metric name the letters of the methods that it is significantly better than.
        group_test: what decided the group; None for the best, and outside the groups.
    """

    name: str
    file: str
    letter: str
    group: int | None
    values: dict[str, float]
    beats: dict[str, tuple[str, ...]]
    group_test: GroupTest | None = None


@dataclass(frozen=True)
class Difference:
    """One metric of one pair of methods: the first method's number minus the second's.

    Args:
        metric: its name.
        n: queries or sessions that were paired.
        difference: in the unit of the metric.
        interval: paired bootstrap interval of the difference, not corrected for the number of tests.
        test: the randomisation test.
        adjusted: its p-value after Holm's correction over all metrics and pairs of the comparison.
        significant: whether that is at most alpha.
        wins: queries on which the first method is better.
        ties: queries on which both have the same value.
        losses: queries on which the second is better.
    """

    metric: str
    n: int
    difference: float
    interval: Interval
    test: PValue
    adjusted: float
    significant: bool
    wins: int
    ties: int
    losses: int

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return {
            "n": self.n,
            "difference": self.difference,
            "interval": [self.interval.low, self.interval.high],
            "p": self.test.p,
            "test": self.test.test,
            "p_holm": self.adjusted,
            "significant": self.significant,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
        }


@dataclass(frozen=True)
class Flips:
    """Queries that one of two methods hits and the other misses, by one metric.

    Args:
        metric: a hit is a value above zero: a target within the metric's cutoff.
        hit_to_miss: benchmark and id of the queries that the first method hits and the second misses.
        miss_to_hit: those that the first misses and the second hits.
    """

    metric: str
    hit_to_miss: tuple[tuple[str, str], ...]
    miss_to_hit: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Counts and the first ids as JSON values."""
        return {
            "metric": self.metric,
            **{
                name: {
                    "count": len(queries),
                    "first": [{"benchmark": each, "id": query} for each, query in queries[:FIRST_FLIPS]],
                }
                for name, queries in (("hit_to_miss", self.hit_to_miss), ("miss_to_hit", self.miss_to_hit))
            },
        }


@dataclass(frozen=True)
class Pair:
    """Two methods, the one that was named first in front.

    Args:
        first: name of the one.
        second: name of the other.
        differences: by metric name, first minus second.
        flips: one entry a cutoff of the leading metric.
    """

    first: str
    second: str
    differences: dict[str, Difference]
    flips: tuple[Flips, ...]


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one benchmark or suite; a notebook shows its tables.

    Args:
        benchmark: id of the benchmark or suite.
        benchmark_version: its version.
        unit: what was resampled: `queries` or `sessions`.
        n: their number.
        leading: the metric that groups and flips are made by: the main metric where it is compared.
        metrics: names of what is compared.
        methods: in the order of the files.
        pairs: each method with each later one.
        signatures: by metric name the printed signature; a mean of several has none of its own.
        draws: draws of the bootstrap, and changes of sign of tests that are not exact.
        seed: their seed.
        alpha: level of significance; intervals hold 1 - alpha.
        notes: what a reader must know beside.

    Example:
        >>> from importlib import resources
        >>> import submissions
        >>> entries = resources.files("submissions.entries")
        >>> names = ("image_text_sum", "image_only")
        >>> files = [entries / f"{name}-shapes.shapes-val.json.gz" for name in names]
        >>> submissions.compare(files, metrics=["recall@10"], draws=100)
        <Comparison shapes/val#2: 2 methods, 300 queries, 1 metric x 1 pair>
    """

    benchmark: str
    benchmark_version: int
    unit: str
    n: int
    leading: str
    metrics: tuple[str, ...]
    methods: tuple[ComparedMethod, ...]
    pairs: tuple[Pair, ...]
    signatures: dict[str, str]
    draws: int
    seed: int
    alpha: float = ALPHA
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What is compared, in one line."""
        return f"<Comparison {self._title()}, {self.n:,} {self.unit}, {self.family}>"

    def _repr_html_(self) -> str:
        """The comparison's tables, for a notebook."""
        from cir_datasets.pages import object_html

        return object_html(self._title(), [f"{self.n:,} {self.unit}", self.family], self.tables())

    def _title(self) -> str:
        return f"{self.benchmark}#{self.benchmark_version}: {counted(len(self.methods), 'method')}"

    def to_pandas(self) -> pd.DataFrame:
        """The differences as a data frame: a row a metric of a pair.

        Returns:
            Columns first, second, metric, those of the two numbers (first_value, second_value), difference,
            low and high (its interval), p, p_holm, significant, wins, ties, losses. Numbers are fractions,
            those of ranks are ranks.

        Example:
            >>> from importlib import resources
            >>> import submissions
            >>> entries = resources.files("submissions.entries")
            >>> names = ("text_only", "image_only")
            >>> files = [entries / f"{name}-shapes.shapes-val.json.gz" for name in names]
            >>> frame = submissions.compare(files, metrics=["recall@10"], draws=100).to_pandas()
            >>> frame[["metric", "wins", "ties", "losses"]].values.tolist()
            [['recall@10', 11, 195, 94]]
        """
        import pandas as pd

        values = {method.name: method.values for method in self.methods}
        return pd.DataFrame(
            [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "metric": name,
                    "first_value": values[pair.first][name],
                    "second_value": values[pair.second][name],
                    "difference": each.difference,
                    "low": each.interval.low,
                    "high": each.interval.high,
                    "p": each.test.p,
                    "p_holm": each.adjusted,
                    "significant": each.significant,
                    "wins": each.wins,
                    "ties": each.ties,
                    "losses": each.losses,
                }
                for pair in self.pairs
                for name, each in pair.differences.items()
            ]
        )

    @property
    def tests(self) -> int:
        """Size of the family that Holm's correction covers: metrics times pairs."""
        return len(self.metrics) * len(self.pairs)

    @property
    def group_tests(self) -> int:
        """Number of tests behind the rank groups: one a method but the best."""
        return max(0, sum(method.group is not None for method in self.methods) - 1)

    @property
    def family(self) -> str:
        """That family in words, such as `4 metrics x 3 pairs`."""
        return f"{counted(len(self.metrics), 'metric')} x {counted(len(self.pairs), 'pair')}"

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values; numbers are fractions, those of ranks are ranks."""
        return {
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            self.unit: self.n,
            "leading_metric": self.leading,
            "interval": {
                "method": f"paired {METHOD}",
                "resampled": self.unit,
                "draws": self.draws,
                "seed": self.seed,
                "level": 1 - self.alpha,
            },
            "test": {
                "method": "paired randomisation, two-sided",
                "draws": self.draws,
                "seed": self.seed,
                "correction": "Holm",
                "family": self.family,
                "tests": self.tests,
                "alpha": self.alpha,
            },
            "methods": [
                {
                    "name": method.name,
                    "file": method.file,
                    "letter": method.letter,
                    "group": method.group,
                    "group_test": method.group_test
                    and {
                        "against": method.group_test.against,
                        "p": method.group_test.p,
                        "p_holm": method.group_test.adjusted,
                    },
                    "metrics": method.values,
                    "beats": {metric: list(letters) for metric, letters in method.beats.items()},
                }
                for method in self.methods
            ],
            "pairs": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "metrics": {name: each.to_dict() for name, each in pair.differences.items()},
                    "flips": [flips.to_dict() for flips in pair.flips],
                }
                for pair in self.pairs
            ],
            "signatures": self.signatures,
            "notes": list(self.notes),
        }

    def flipped(self) -> Iterator[dict[str, str]]:
        """Every flip: metric, benchmark, id, both methods, and `change` from the first to the second."""
        for pair in self.pairs:
            for flips in pair.flips:
                for change, queries in (
                    ("hit to miss", flips.hit_to_miss),
                    ("miss to hit", flips.miss_to_hit),
                ):
                    for benchmark, query in queries:
                        yield {
                            "metric": flips.metric,
                            "benchmark": benchmark,
                            "id": query,
                            "first": pair.first,
                            "second": pair.second,
                            "change": change,
                        }

    def plot(self, path: str | Path) -> Path:
        """Draw every difference with its interval into a `.png` or `.svg` file, a row a metric of a pair.

        Args:
            path: the file; text in an SVG stays text.

        Returns:
            The file's absolute path.

        Raises:
            CallError: the name ends in neither, or there are more than 300 rows.
            MissingExtraError: matplotlib is not installed.
            SubmissionError: the file cannot be written.
        """
        from submissions.comparison.plot import write_forest

        level = f"{100 * (1 - self.alpha):g} %"
        return write_forest(
            path,
            self._drawn([metric for metric in self.metrics if not is_rank(metric)]),
            self._drawn([metric for metric in self.metrics if is_rank(metric)]),
            title=f"{self.benchmark}, {self.n:,} {self.unit}: difference with {level} interval",
            note=f"full mark: significant, Holm over {self.family}, alpha {self.alpha:g}; open mark: not",
        )

    def _drawn(self, metrics: list[str]) -> list[Row]:
        from submissions.comparison.plot import Drawn, heading

        rows: list[Row] = []
        for pair in self.pairs if metrics else ():
            rows.append(heading(pair.first, pair.second))
            for metric in metrics:
                each = pair.differences[metric]
                drawn = Drawn(each.difference, each.interval.low, each.interval.high, each.significant)
                # A mean of four metrics would take half of the picture.
                rows.append((metric if metric in self.signatures else "main", drawn))
        return rows

    def tables(self) -> tuple[Table, ...]:
        """The scores with superscripts, one table a pair, and the flips."""
        return comparison_tables(self)

    def text(self, format: str = "table") -> str:
        """The comparison in one of the formats of `cir_datasets.common.tables`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """All tables of a comparison; see `Comparison.tables`."""
    pairs = [_pair(comparison, pair) for pair in comparison.pairs]
    flips = [_flips(comparison)] if any(pair.flips for pair in comparison.pairs) else []
    return (_scores(comparison), *pairs, *flips)


def _scores(comparison: Comparison) -> Table:
    rows = tuple(
        (
            Cell(method.name),
            Cell(method.letter),
            Cell("-" if method.group is None else str(method.group), method.group),
            *(_score(comparison, method, metric) for metric in comparison.metrics),
        )
        for method in comparison.methods
    )
    # A mean of four metrics would be wider than the rest of the table.
    means = [metric for metric in comparison.metrics if metric not in comparison.signatures]
    heads = ["main" if metric in means else metric for metric in comparison.metrics]
    return Table(
        title=f"{len(rows)} methods on {comparison.benchmark}#{comparison.benchmark_version}, "
        f"{comparison.n:,} {comparison.unit}",
        columns=("method", "letter", "group", *heads),
        rows=rows,
        notes=(
            _raised_letters(comparison),
            _what_groups_are(comparison),
            *(f"main: {metric}" for metric in means),
            *comparison.notes,
            *_signatures(comparison),
        ),
    )


def _raised_letters(comparison: Comparison) -> str:
    return (
        "A raised letter names a method that is significantly worse by that metric: two-sided paired "
        f"randomisation test, Holm's correction over {comparison.family}, alpha {comparison.alpha:g}."
    )


def _what_groups_are(comparison: Comparison) -> str:
    return (
        f"Group: by {comparison.leading} not significantly worse than its first, each method tested once, "
        f"Holm's correction over these {counted(comparison.group_tests, 'test')} alone."
    )


def _score(comparison: Comparison, method: ComparedMethod, metric: str) -> Cell:
    value = method.values[metric]
    letters = method.beats[metric]
    others = [other.values[metric] for other in comparison.methods]
    unbeaten = not any(is_better(metric, other, value) for other in others)
    best = unbeaten and any(is_better(metric, value, other) for other in others)
    mark = ("" if all(len(letter) == 1 for letter in letters) else ",").join(letters)
    return Cell(shown_value(metric, value).strip(), value, superscript=mark, bold=best)


def _signatures(comparison: Comparison) -> list[str]:
    together: dict[str, list[str]] = {}
    for metric, text in comparison.signatures.items():
        together.setdefault(text, []).append(metric)
    if len(together) == 1:
        return [f"signature: {text}" for text in together]
    return [f"signature of {', '.join(metrics)}: {text}" for text, metrics in together.items()]


def _pair(comparison: Comparison, pair: Pair) -> Table:
    rows = tuple(
        (
            Cell(metric),
            _signed(metric, each.difference),
            _signed(metric, each.interval.low),
            _signed(metric, each.interval.high),
            _p(each.test.p),
            _p(each.adjusted, bold=each.significant),
            Cell(each.test.test),
            *(Cell(f"{count:,}", count) for count in (each.wins, each.ties, each.losses)),
        )
        for metric, each in pair.differences.items()
    )
    intervals = (
        f"low, high: {100 * (1 - comparison.alpha):g} % paired bootstrap interval over "
        f"{comparison.unit}, {comparison.draws:,} draws, seed {comparison.seed}, not corrected. "
        f"p (Holm) stands out where it is at most {comparison.alpha:g}."
    )
    return Table(
        title=f"{pair.first} against {pair.second}",
        columns=("metric", "difference", "low", "high", "p", "p (Holm)", "test", "win", "tie", "loss"),
        rows=rows,
        notes=(intervals,),
    )


def _signed(metric: str, value: float) -> Cell:
    return Cell(signed(metric, value), value)


def _p(value: float, *, bold: bool = False) -> Cell:
    return Cell(f"{value:.4f}" if value >= _SMALLEST else f"<{_SMALLEST}", value, bold=bold)


def _flips(comparison: Comparison) -> Table:
    rows = tuple(
        (
            Cell(f"{pair.first} to {pair.second}"),
            Cell(flips.metric),
            *(Cell(f"{len(each):,}", len(each)) for each in (flips.hit_to_miss, flips.miss_to_hit)),
        )
        for pair in comparison.pairs
        for flips in pair.flips
    )
    return Table(
        title=f"{comparison.unit.capitalize()} that flipped",
        columns=("from, to", "metric", "hit to miss", "miss to hit"),
        rows=rows,
        notes=("A hit has a target within the metric's cutoff.",),
    )
