"""How a comparison is laid out in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cir_datasets.common.tables import Cell, Table
from submissions.scoring.samples import is_better
from submissions.scoring.score_report import shown_value

if TYPE_CHECKING:
    from submissions.comparison.result import ComparedMethod, Comparison, Pair

_SMALLEST = 0.0001
"""P-values below this are shown as such."""


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
            Cell(str(method.group), method.group),
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
            f"A group holds methods that these tests do not tell from its first by {comparison.leading}.",
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
    text = shown_value(metric, value).strip()
    if float(text) == 0:
        text = text.removeprefix("-")
    return Cell(text if text.startswith("-") or float(text) == 0 else f"+{text}", value)


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
