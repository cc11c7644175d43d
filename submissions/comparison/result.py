"""What a comparison found, as values, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cir_datasets.common.tables import render_or_json
from cir_datasets.common.terminal import Cell, Table, counted
from cir_datasets.registry.schema import main_metric_terms
from cir_metrics.resampling import ALPHA
from submissions.comparison.difference import Pair
from submissions.comparison.groups import GroupTest
from submissions.scoring.intervals import METHOD
from submissions.scoring.samples import is_better
from submissions.scoring.score_report import shown_value, signature_notes, signed

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

_SMALLEST = 0.0001
"""P-values below this are shown as such."""


@dataclass(frozen=True)
class ComparedMethod:
    """One of the methods.

    Args:
        name: with the file's where another method has the same.
        letter: what stands for it in superscripts: `a` for the first file, and so on.
        group: its rank group by the leading metric, from 1; None for an oracle.
        values: by metric name the numbers, fractions (`mean_rank`: a rank).
        beats: by metric name the letters of the methods that it is significantly better than.
        group_test: what decided the group, against the method of which place; None for the best, and outside
            the groups.
    """

    name: str
    file: str
    letter: str
    group: int | None
    values: dict[str, float]
    beats: dict[str, tuple[str, ...]]
    group_test: GroupTest | None = None


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one benchmark or suite; a notebook shows its tables.

    Args:
        benchmark: id of the benchmark or suite.
        unit: what was resampled, n of them: `queries` or `sessions`.
        leading: the metric that groups and flips are made by: the main metric where it is compared.
        methods: in the order of the files.
        pairs: each method with each later one.
        signatures: by metric name the printed signature; a mean of several has none of its own.
        draws: draws of the bootstrap, and changes of sign of tests that are not exact.
        alpha: level of significance; intervals hold 1 - alpha.
        notes: what a reader must know beside.
        beside: tables of what these methods have besides, such as agreement of dialogues.
        more: the same as JSON values, by key.

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
    beside: tuple[Table, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

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
            n, low and high (its interval), p, p_holm, test, significant, wins, ties, losses. Numbers are
            fractions, those of ranks are ranks.

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
        rows = [
            {
                "first": pair.first,
                "second": pair.second,
                "metric": name,
                "first_value": values[pair.first][name],
                "second_value": values[pair.second][name],
                "n": each.n,
                "difference": each.difference,
                "low": each.interval.low,
                "high": each.interval.high,
                **each.to_dict(),
            }
            for pair in self.pairs
            for name, each in pair.differences.items()
        ]
        return pd.DataFrame(rows).drop(columns="interval")

    @property
    def tests(self) -> int:
        """Size of the family that Holm's correction covers: metrics times pairs."""
        return len(self.metrics) * len(self.pairs)

    @property
    def family(self) -> str:
        """That family in words, such as `4 metrics x 3 pairs`."""
        return f"{counted(len(self.metrics), 'metric')} x {counted(len(self.pairs), 'pair')}"

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON values; numbers are fractions, those of ranks are ranks."""
        drawn = {"draws": self.draws, "seed": self.seed}
        return {
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            self.unit: self.n,
            "leading_metric": self.leading,
            "interval": {
                "method": f"paired {METHOD}",
                "resampled": self.unit,
                **drawn,
                "level": 1 - self.alpha,
            },
            "test": {
                "method": "paired randomisation, two-sided",
                **drawn,
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
                    "group_test": (test := method.group_test)
                    and {"against": self.methods[test.against].letter, "p": test.p, "p_holm": test.adjusted},
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
            **self.more,
        }

    def flipped(self) -> Iterator[dict[str, str]]:
        """Every flip: metric, benchmark, id, both methods, and `change` from the first to the second."""
        for pair in self.pairs:
            methods = {"first": pair.first, "second": pair.second}
            for flips in pair.flips:
                for change, queries in flips.changes.items():
                    for benchmark, query in queries:
                        where = {"metric": flips.metric, "benchmark": benchmark, "id": query}
                        yield {**where, **methods, "change": change.replace("_", " ")}

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
            self.pairs,
            self._heads(),
            title=f"{self.benchmark}, {self.n:,} {self.unit}: difference with {level} interval",
            note=f"full mark: significant, Holm over {self.family}, alpha {self.alpha:g}; open mark: not",
        )

    def _heads(self) -> dict[str, str]:
        """By metric the head of its column; a mean of four would be wider than the rest of a table."""
        return {name: name if len(main_metric_terms(name)) == 1 else "main" for name in self.metrics}

    def tables(self) -> tuple[Table, ...]:
        """What stands beside, the scores with superscripts, one table a pair, and the flips."""
        flips = [_flips(self)] if any(pair.flips for pair in self.pairs) else []
        return (*self.beside, _scores(self), *(_pair(self, pair) for pair in self.pairs), *flips)

    def text(self, format: str = "table") -> str:
        """The comparison in one of the formats of `cir_datasets.common.tables`.

        Raises:
            UnknownNameError: there is no such format.
        """
        return render_or_json(format, self.tables, self.to_dict)


def _scores(comparison: Comparison) -> Table:
    heads = comparison._heads()
    rows = []
    for method in comparison.methods:
        cells = [Cell(method.name), Cell(method.letter)]
        cells.append(Cell("-" if method.group is None else str(method.group), method.group))
        for metric, value in method.values.items():
            others = [other.values[metric] for other in comparison.methods]
            unbeaten = not any(is_better(metric, other, value) for other in others)
            best = unbeaten and any(is_better(metric, value, other) for other in others)
            mark = raised(method.beats[metric])
            cells.append(Cell(shown_value(metric, value).strip(), value, superscript=mark, bold=best))
        rows.append(tuple(cells))
    # One test a method, but for the best.
    tests = sum(method.group is not None for method in comparison.methods) - 1
    how = "; no method is tested against another."
    if tests > 0:
        how = (
            " not significantly worse than its first, each method tested once, Holm's correction over "
            f"{'this' if tests == 1 else 'these'} {counted(tests, 'test')} alone."
        )
    letters_are = (
        "A raised letter names a method that is significantly worse by that metric: two-sided paired "
        f"randomisation test, Holm's correction over {comparison.family}, alpha {comparison.alpha:g}."
    )
    notes = (
        letters_are,
        f"Group: by {comparison.leading}{how}",
        *(f"main: {metric}" for metric, head in heads.items() if head != metric),
        *comparison.notes,
        *signature_notes(comparison.signatures),
    )
    on = f"{comparison.benchmark}#{comparison.benchmark_version}, {comparison.n:,} {comparison.unit}"
    head = ("method", "letter", "group", *heads.values())
    return Table(f"{len(rows)} methods on {on}", head, tuple(rows), notes)


def _pair(comparison: Comparison, pair: Pair) -> Table:
    rows = tuple(
        (
            Cell(metric),
            *(Cell(signed(metric, value), value) for value in (each.difference, *each.interval.ends)),
            Cell(shown_p(each.test.p), each.test.p),
            Cell(shown_p(each.adjusted), each.adjusted, bold=each.significant),
            Cell(each.test.test),
            *count_cells(each.wins, each.ties, each.losses),
        )
        for metric, each in pair.differences.items()
    )
    intervals = (
        f"low, high: {100 * (1 - comparison.alpha):g} % paired bootstrap interval over "
        f"{comparison.unit}, {comparison.draws:,} draws, seed {comparison.seed}, not corrected. "
        f"p (Holm) stands out where it is at most {comparison.alpha:g}."
    )
    columns = ("metric", "difference", "low", "high", "p", "p (Holm)", "test", "win", "tie", "loss")
    return Table(f"{pair.first} against {pair.second}", columns, rows, (intervals,))


def raised(letters: Sequence[str]) -> str:
    """The letters of methods as a superscript.

    Example:
        >>> raised(["a", "c"]), raised(["a", "aa"])
        ('ac', 'a,aa')
    """
    return ("" if all(len(letter) == 1 for letter in letters) else ",").join(letters)


def shown_p(p: float) -> str:
    """A p-value as tables show it.

    Example:
        >>> shown_p(0.04211), shown_p(0.00001)
        ('0.0421', '<0.0001')
    """
    return f"{p:.4f}" if p >= _SMALLEST else f"<{_SMALLEST}"


def count_cells(*counts: int) -> tuple[Cell, ...]:
    """Counts as cells of a table."""
    return tuple(Cell(f"{count:,}", count) for count in counts)


def _flips(comparison: Comparison) -> Table:
    rows = tuple(
        (
            Cell(f"{pair.first} to {pair.second}"),
            Cell(flips.metric),
            *count_cells(*map(len, flips.changes.values())),
        )
        for pair in comparison.pairs
        for flips in pair.flips
    )
    note = "A hit has a target within the metric's cutoff."
    columns = ("from, to", "metric", "hit to miss", "miss to hit")
    return Table(f"{comparison.unit.capitalize()} that flipped", columns, rows, (note,))
