"""Figures of several methods on sessions: by turn, by subset, by aggregation (CIRCLED, Figures 7 to 9)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cir_datasets.common.atomic import write_errors
from cir_datasets.common.plots import INK, empty_figure, percent_axes
from cir_datasets.registry import benchmark_ids
from cir_metrics.errors import CallError
from submissions.comparison.keys import check_comparable
from submissions.errors import SubmissionError
from submissions.report.plots import HATCHES, MARKERS, PADS, legend_below, save_plot, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from submissions.scoring.score_report import ScoreReport

FINAL, AREA, _HITS = "final_recall@10", "hits_auc@10", "hits@10"
METRICS = (_HITS, FINAL, AREA)
"""What a score must hold."""
FORMATS = (".svg", ".pdf")
_HEADS = {FINAL: "Final Recall@10", AREA: "AUC over Hits@10"}
_COLUMNS = 3
_PANEL = (2.6, 2.1)
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
"""Told apart by people who see few colours (Okabe and Ito): papers have five methods."""
_BEST = "\N{BLACK STAR}"


class _Run(NamedTuple):
    """A method with one aggregation on one benchmark."""

    method: str
    aggregation: str
    report: ScoreReport

    @property
    def benchmark(self) -> str:
        return self.report.benchmark

    def value(self, metric: str) -> float:
        """A number in per cent."""
        return 100 * {**self.report.metrics, **self.report.extra}[metric]

    def hits(self) -> list[float]:
        """Hits@10 by turn, in per cent."""
        values = {**self.report.metrics, **self.report.extra}
        return [100 * value for name, value in values.items() if name.startswith(f"{_HITS}@turn")]


def write_figures(scores: Sequence[ScoreReport], folder: str | Path) -> list[Path]:
    """Draw methods side by side, each figure as SVG and as PDF.

    `hits_by_turn`: a panel a benchmark, a line a method. `by_subset`: Final Recall@10 and the area under
    Hits@10, a bar a method, the best of a benchmark marked. Of a method with several aggregations these show
    the best on each benchmark. `aggregations_BENCHMARK`: a panel a method, a line an aggregation, the best
    marked.

    Args:
        scores: of rank files or bundles of sessions, with all `METRICS`.
        folder: made where it is missing.

    Returns:
        The files.

    Raises:
        CallError: a score is of queries or lacks a metric, or two are of one method and aggregation.
        ComparisonError: two scores on one benchmark are not comparable.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the folder cannot be written.
    """
    runs = _runs(scores)
    figures = {"hits_by_turn": _by_turn(runs), "by_subset": _by_subset(runs)}
    for benchmark in _distinct(run.benchmark for run in runs):
        there = [run for run in runs if run.benchmark == benchmark]
        several = [
            run for run in there if len({one.aggregation for one in there if one.method == run.method}) > 1
        ]
        if several:
            figures[f"aggregations_{benchmark.replace('/', '_')}"] = _by_aggregation(several)
    folder = Path(folder).expanduser().absolute()
    with write_errors(folder, SubmissionError, "name another folder."):
        folder.mkdir(parents=True, exist_ok=True)
    return [
        save_plot(figure, folder / f"{name}{ending}")
        for name, figure in figures.items()
        for ending in FORMATS
    ]


def is_short(score: ScoreReport) -> bool:
    """Whether a score of sessions lacks numbers that figures show, which `METRICS` would have brought."""
    has_turns = all(part.evidence is not None and part.evidence.num_turns is not None for part in score.parts)
    return has_turns and not all(map(_holds_all, score.parts))


def _holds_all(part: ScoreReport) -> bool:
    return {FINAL, AREA, f"{_HITS}@turn1"} <= {*part.metrics, *part.extra}


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _runs(scores: Sequence[ScoreReport]) -> list[_Run]:
    """The runs of all files, benchmark by benchmark."""
    runs: dict[tuple[str, str, str], _Run] = {}
    for score in scores:
        # Matplotlib takes what stands between two dollar signs for a formula.
        name = _without(score.aggregation, score.method).replace("$", r"\$")
        for part in score.parts:
            run = _Run(name, _label(part.aggregation), part)
            if not _holds_all(part):
                raise CallError(
                    f"{score.file}: the figures are of sessions, by {', '.join(METRICS)}, which it has not. "
                    "Fix: hand in files for benchmarks of sessions."
                )
            key = (run.benchmark, run.method, run.aggregation)
            if key in runs:
                raise CallError(
                    f"{runs[key].report.file} and {score.file} are both of {name!r} on {part.benchmark} with "
                    f"the aggregation {run.aggregation or '(none)'}. Fix: name one of them otherwise, with "
                    f"--name {score.file}=NAME."
                )
            runs[key] = run
    known = [*benchmark_ids(), *(run.benchmark for run in runs.values())]
    benchmarks = sorted({run.benchmark for run in runs.values()}, key=known.index)
    for benchmark in benchmarks:
        check_comparable(
            [run.report for run in runs.values() if run.benchmark == benchmark], apart_by=("ref",)
        )
    return sorted(runs.values(), key=lambda run: benchmarks.index(run.benchmark))


def _label(aggregation: str) -> str:
    """What sets an aggregation apart: `weighted 0.8`, and `feedback` without its weights."""
    return re.sub(r"^(\w+) \(alpha ([\d.]+)\)$", r"\1 \2", aggregation).partition(" (")[0]


def _without(aggregation: str, method: str) -> str:
    """A method's name without the aggregation, which `cir run` puts behind it."""
    if not aggregation:
        return method
    end = rf"{re.escape(aggregation.partition(' ')[0])}( [\d.]+)?\)$"
    return re.sub(rf" \({end}", "", re.sub(f", {end}", ")", method))


def _best_of_each(runs: Sequence[_Run], metric: str) -> dict[tuple[str, str], _Run]:
    """By benchmark and method the best of its aggregations."""
    together: dict[tuple[str, str], list[_Run]] = {}
    for run in runs:
        together.setdefault((run.benchmark, run.method), []).append(run)
    return {key: max(each, key=lambda run: run.value(metric)) for key, each in together.items()}


def _grid(
    panels: Mapping[str, Mapping[str, list[float]]], best: Mapping[str, str], heading: str, note: str
) -> Figure:
    """Panels by turn, three in a row, of one scale.

    Args:
        panels: by title, by what the legend calls a line, Hits@10 by turn.
        best: by title the line that is marked.
        heading: what the figure shows.
        note: what is marked, or "".
    """
    labels = _distinct(label for lines in panels.values() for label in lines)
    curves = [hits for lines in panels.values() for hits in lines.values()]
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = empty_figure(max(5.2, _PANEL[0] * columns), 0.9 + _PANEL[1] * rows, pads=PADS)
    for place, (title, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, place)
        for number, label in enumerate(labels):
            hits, is_best = lines.get(label, []), best.get(title) == label
            colour, marker = _COLOURS[number % len(_COLOURS)], MARKERS[style(number)[1]]
            turns, width = range(1, len(hits) + 1), 2.4 if is_best else 1.3
            axes.plot(turns, hits, color=colour, marker=marker, markersize=4, linewidth=width, label=label)
            if is_best:
                where: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center"}
                axes.annotate(_BEST, (len(hits), hits[-1]), color=colour, **where)
        axes.set_title(title, size=8, color=INK, loc="left")
        axes.set_xticks(range(1, max(map(len, curves)) + 1))
        percent_axes(axes, "turn" if place > len(panels) - columns else "")
        axes.set_ylim(0, min(102.0, 1.15 * max(map(max, curves)) or 1.0))
    _head(figure, heading, note)
    legend_below(figure.axes[0], 4)
    return figure


def _head(figure: Figure, heading: str, note: str) -> None:
    """What a figure shows, with a sentence on what is marked; below it lies the legend."""
    text = f"{heading}: {note}" if note else heading
    figure.suptitle(textwrap.fill(text, int(15 * figure.get_figwidth())), size=8, color=INK)


def _by_turn(runs: Sequence[_Run]) -> Figure:
    found = _best_of_each(runs, AREA)
    benchmarks = _distinct(run.benchmark for run in runs)
    panels = {
        title: {method: run.hits() for (of, method), run in found.items() if of == benchmark}
        for title, benchmark in zip(_short(benchmarks), benchmarks, strict=True)
    }
    note = f"of each method the aggregation with the best {_HEADS[AREA]}" if len(found) < len(runs) else ""
    return _grid(panels, {}, "Hits@10 by turn", note)


def _by_aggregation(runs: Sequence[_Run]) -> Figure:
    """Of methods with several aggregations on one benchmark."""
    panels, marked = {}, {}
    for (_, method), best in _best_of_each(runs, FINAL).items():
        title = f"{textwrap.fill(method, 38)}\n{_BEST} {best.aggregation}: {best.value(FINAL):.1f}"
        panels[title] = {run.aggregation or "(none)": run.hits() for run in runs if run.method == method}
        marked[title] = best.aggregation or "(none)"
    heading = f"Hits@10 by turn and aggregation on {runs[0].benchmark}"
    return _grid(panels, marked, heading, f"{_BEST} the best {_HEADS[FINAL]}, with its value")


def _by_subset(runs: Sequence[_Run]) -> Figure:
    """Bars of both metrics, a group a benchmark."""
    benchmarks, methods = _distinct(run.benchmark for run in runs), _distinct(run.method for run in runs)
    sessions = {run.benchmark: run.report.n for run in runs}
    width = 0.8 / len(methods)
    figure = empty_figure(max(5.2, 0.9 + len(benchmarks) * (0.3 + 0.16 * len(methods))), 4.6, pads=PADS)
    panels = figure.subplots(2, 1, sharex=True)
    several = len({(run.benchmark, run.method) for run in runs}) < len(runs)
    for axes, (metric, head) in zip(panels, _HEADS.items(), strict=True):
        found = _best_of_each(runs, metric)
        best = {
            benchmark: max(run.value(metric) for (of, _), run in found.items() if of == benchmark)
            for benchmark in benchmarks
        }
        for number, method in enumerate(methods):
            there = [(place, found.get((name, method))) for place, name in enumerate(benchmarks)]
            bars = [(place - 0.4 + width * (number + 0.5), run) for place, run in there if run is not None]
            drawn = axes.bar(
                [left for left, _ in bars],
                [run.value(metric) for _, run in bars],
                0.9 * width,
                color=_COLOURS[number % len(_COLOURS)],
                hatch=HATCHES[style(number)[1]],
                edgecolor="white",
                linewidth=0,
                label=method,
            )
            texts = axes.bar_label(drawn, padding=2, rotation=90, size=6, color=INK)
            for text, (_, run) in zip(texts, bars, strict=True):
                is_best = run.value(metric) == best[run.benchmark]
                letter = f" {_letter(run.aggregation)}".rstrip() if several else ""
                text.set_text(f"{f'{_BEST} ' if is_best else ''}{run.value(metric):.1f}{letter}")
                text.set_weight("bold" if is_best else "normal")
        percent_axes(axes, "")
        # Values stand upright above the bars.
        axes.set_ylim(0, 1.6 * max(run.value(metric) for run in found.values()) or 1.0)
        axes.set_yticks([tick for tick in axes.get_yticks() if tick <= min(100, axes.get_ylim()[1])])
        axes.set_title(head, size=8, color=INK, loc="left")
        axes.tick_params(axis="x", length=0)
    names = [name.replace("_", "\n") if len(benchmarks) > 2 else name for name in _short(benchmarks)]
    labels = [f"{name}\n({sessions[one]:,})" for name, one in zip(names, benchmarks, strict=True)]
    panels[-1].set_xticks(range(len(benchmarks)), labels)
    note = f"{_BEST} the best of a subset"
    if several:
        labels = _distinct(run.aggregation for run in runs if run.aggregation)
        letters = ", ".join(f"{_letter(label)} {label}" for label in labels)
        note += f"; of each method the aggregation with the best value ({letters})"
    _head(figure, "Sessions by subset", note)
    legend_below(panels[0], 5)
    return figure


def _letter(aggregation: str) -> str:
    return aggregation[:1].upper()


def _short(benchmarks: Sequence[str]) -> list[str]:
    """Ids, without their dataset where all are of one and there are several."""
    datasets = {benchmark.partition("/")[0] for benchmark in benchmarks}
    several = len(benchmarks) > 1 and len(datasets) == 1
    return [benchmark.partition("/")[2] if several else benchmark for benchmark in benchmarks]
