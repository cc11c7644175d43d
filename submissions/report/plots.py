"""A report as a picture: Hits@K by turn, metrics by aspect, a suite's members, or the board's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cir_datasets.common.atomic import write_errors
from cir_datasets.common.plots import DPI, INK, QUIET, empty_figure, percent_axes, quiet_axes
from cir_metrics.errors import CallError
from submissions.errors import SubmissionError
from submissions.scoring.score_report import is_rank, rounds_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from submissions.report.grouping import Group, Grouping, Values
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.score_report import ScoreReport

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")
"""Told apart by people who see few colours (Okabe and Ito), and of different lightness in print."""

MARKERS, HATCHES = "osD^", ("", "////", "....", "xxxx")
"""Beside each colour; from the fifth metric on a colour comes with the next one of these."""

_TURN_INCHES = (5.2, 3.4)
PADS = (0.1, 0.08)
_SUFFIXES = (".png", ".svg", ".pdf")


Line = tuple[str, "Values", "Values"]
"""A row of bars: its name, its values by metric, and what a random order is expected to get."""


def write_plot(
    score: ScoreReport,
    groupings: Mapping[str, Grouping],
    random: Values,
    members: Sequence[Line],
    intervals: Intervals | None,
    path: str | Path,
) -> Path:
    """Draw a score with what stands beside it; `Report.plot` calls this.

    Sessions: Hits@K and Recall@K by turn, with bands where the report has intervals, and the random ranker.
    Queries with aspects: a bar a metric and aspect. A suite: a bar a metric and member. Else a bar a metric.
    Bars have a tick at what a random order is expected to get.

    Args:
        score: whose numbers they are.
        groupings: by turn or by aspect, as a report has them.
        random: what a random order is expected to get, by metric.
        members: of a suite a row a member.
        intervals: of the score, or None.
        path: the file, `.png`, `.svg` or `.pdf`; text in an SVG stays text.

    Returns:
        The file's absolute path.

    Raises:
        CallError: the name ends in none of these.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the file cannot be written.
    """
    path = plot_path(path)
    title = f"{score.method} on {score.benchmark}"
    if "by_turn" in groupings and _cutoffs(groupings["by_turn"].groups):
        figure = empty_figure(*_TURN_INCHES, pads=PADS)
        _draw_turns(figure.add_subplot(), groupings["by_turn"], intervals)
    else:
        values = {**score.metrics, **score.extra}
        lines, metrics = _bars(values, groupings, random, members)
        if not lines or not metrics:
            listed = ", ".join(values)
            raise CallError(f"a plot shows shares, and there are none: {listed}. Fix: choose another metric.")
        figure = empty_figure(6.2, 1.3 + len(lines) * (0.16 + 0.17 * len(metrics)), pads=PADS)
        _draw_bars(figure.add_subplot(), lines, metrics)
    drawn = figure.suptitle(title, size=10, color=INK)
    while _too_wide(drawn, figure):
        title = title[:-1]
        drawn.set_text(f"{title}…")
    return save_plot(figure, path)


def write_rounds(
    dialogues: Sequence[tuple[str, ScoreReport, Grouping | None, Intervals | None]], path: str | Path
) -> Path:
    """Draw Hits@k by round, a line a dialogue, with bands where there are intervals (FISD, figure 4).

    Args:
        dialogues: of one benchmark: what the legend calls each, its score, numbers by round, and intervals.
        path: the file, `.png`, `.svg` or `.pdf`.

    Raises:
        CallError: the name ends in none of these, or the reports lack Hits@k.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the file cannot be written.
    """
    path = plot_path(path)
    figure = empty_figure(*_TURN_INCHES, pads=PADS)
    axes = figure.add_subplot()
    rounds = [rounds_of(score) for _, score, _, _ in dialogues]
    for number, (label, score, grouping, intervals) in enumerate(dialogues):
        k = rounds_of(score).k
        if grouping is None or f"hits@{k}" not in grouping.groups[0].values:
            raise CallError(f"the plot shows Hits@{k} by round. Fix: ask for hits@{k}, too.")
        _draw_hits(axes, number, grouping.groups, intervals, k, label, None)
    axes.set_xticks(range(1, max(each.last for each in rounds) + 1))
    percent_axes(axes, "round")
    legend_below(axes, 1)
    names = ", ".join(f"Hits@{k}" for k in sorted({each.k for each in rounds}))
    figure.suptitle(f"{names} by round on {dialogues[0][1].benchmark}", size=10, color=INK)
    return save_plot(figure, path)


def plot_path(path: str | Path, called: str = "the plot") -> Path:
    """Where a picture is written, as an absolute path.

    Args:
        path: the file.
        called: what messages call it.

    Raises:
        CallError: it is a folder or empty, or the name ends in none of `.png`, `.svg` and `.pdf`.
    """
    given, path = str(path), Path(path).expanduser().absolute()
    if path.is_dir():
        what = "no file is named" if given in ("", ".") else f"{given} is a folder"
        raise CallError(f"{called}: {what}. Fix: name a file, such as {Path(given) / 'plot.png'}.")
    if path.suffix.lower() not in _SUFFIXES:
        raise CallError(
            f"{path.name}: a plot is written as .png, .svg or .pdf. Fix: name it {path.stem}.png."
        )
    return path


def save_plot(figure: Figure, path: Path) -> Path:
    """Write a figure; text in an SVG stays text, and the same figure gives the same file.

    Raises:
        SubmissionError: the file cannot be written.
    """
    from matplotlib import rc_context

    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    metadata = dates.get(path.suffix.lower(), {})
    with (
        write_errors(path, SubmissionError, "name a file in a folder that exists."),
        rc_context({"svg.fonttype": "none", "svg.hashsalt": "cir", "pdf.fonttype": 42}),
    ):
        figure.savefig(path, dpi=DPI, facecolor="white", metadata=metadata)
    return path


def _too_wide(drawn: Artist, figure: Figure) -> bool:
    return bool(drawn.get_window_extent().width > 0.97 * figure.bbox.width)


def style(number: int) -> tuple[str, int]:
    """Colour of a metric, and the place of its marker or hatch: no two of 16 metrics have both in common."""
    return _COLOURS[number % 4], (number + number // 4) % 4


def _draw_turns(axes: Axes, grouping: Grouping, intervals: Intervals | None) -> None:
    groups = grouping.groups
    turns = [int(group.key) for group in groups]
    cutoffs = _cutoffs(groups)
    for number, k in enumerate(cutoffs):
        colour, place = style(number)
        level = 0.0 if intervals is None else 100 * intervals.level
        if f"hits@{k}" in groups[0].values:
            _draw_hits(axes, number, groups, intervals, k, f"Hits@{k}", f"{level:g} % interval of Hits@{k}")
        if f"recall@{k}" in groups[0].values:
            axes.plot(
                turns,
                _percent([group.values[f"recall@{k}"] for group in groups]),
                color=colour,
                marker=MARKERS[place],
                markersize=5,
                markerfacecolor="white",
                linestyle=(0, (4, 2)),
                label=f"Recall@{k} at the turn",
            )
        if all(f"hits@{k}" in group.random for group in groups):
            floor = _percent([group.random[f"hits@{k}"] for group in groups])
            axes.plot(
                turns,
                floor,
                color=QUIET if len(cutoffs) == 1 else colour,
                linewidth=1.2,
                linestyle=(0, (1, 1.5)),
                label=f"random Hits@{k}",
            )
    axes.set_xticks(turns, [f"{group.key}\n({group.n:,})" for group in groups])
    percent_axes(axes, f"{grouping.head} (sessions that have it)")
    legend_below(axes, 2)


def _draw_hits(
    axes: Axes,
    number: int,
    groups: Sequence[Group],
    intervals: Intervals | None,
    k: int,
    label: str,
    band: str | None,
) -> None:
    """A line of Hits@K by turn, and its intervals where there are some.

    Args:
        axes: where it is drawn.
        number: of the line in the picture.
        groups: by turn.
        intervals: of the score, or None.
        k: K.
        label: of the line in the legend.
        band: of the intervals in the legend; None for none.
    """
    turns = [int(group.key) for group in groups]
    hits = _percent([group.values[f"hits@{k}"] for group in groups])
    colour, place = style(number)
    axes.plot(turns, hits, color=colour, marker=MARKERS[place], markersize=5, label=label)
    ends = _band(intervals, k, turns)
    if ends is not None:
        axes.fill_between(turns, *ends, color=colour, alpha=0.18, linewidth=0, label=band)


def _cutoffs(groups: Sequence[Group]) -> list[int]:
    """K of the Hits and Recall that there are: not all where some metrics are selected."""
    names = (name.partition("@") for name in groups[0].values)
    return list(dict.fromkeys(int(k) for metric, _, k in names if metric in ("hits", "recall")))


def _band(
    intervals: Intervals | None, k: int, turns: Sequence[int]
) -> tuple[list[float], list[float]] | None:
    """Both ends of the intervals of Hits@K by turn, in per cent, where there is one for every turn."""
    known = {} if intervals is None else intervals.values
    found = [known.get(f"hits@{k}@turn{turn}") for turn in turns]
    ends = [(100 * each.low, 100 * each.high) for each in found if each is not None]
    return ([low for low, _ in ends], [high for _, high in ends]) if len(ends) == len(turns) else None


def _bars(
    values: Values, groupings: Mapping[str, Grouping], random: Values, members: Sequence[Line]
) -> tuple[list[Line], list[str]]:
    """The rows of bars, and the metrics that each has."""
    if members:
        return list(members), [name for name in _shares(values) if name in members[0][1]]
    if "by_aspect" in groupings:
        groups = groupings["by_aspect"].groups
        lines = [(f"{group.name} ({group.n:,})", group.values, group.random) for group in groups]
        return lines, _shares(groups[0].values)
    shares = _shares(values)
    return [(name, {"score": values[name]}, {"score": random.get(name)}) for name in shares], ["score"]


def _shares(names: Iterable[str]) -> list[str]:
    """The metrics that a bar in per cent can show: no ranks and no counts."""
    return [name for name in names if not is_rank(name)]


def _draw_bars(axes: Axes, lines: Sequence[Line], metrics: Sequence[str]) -> None:
    height = 0.8 / len(metrics)
    largest = 0.0
    for number, metric in enumerate(metrics):
        values = [line.get(metric) for _, line, _ in lines]
        random = [floor.get(metric) for _, _, floor in lines]
        places = [row - 0.4 + height * (number + 0.5) for row in range(len(lines))]
        shown = _percent(values)
        largest = max([largest, *shown, *_percent(random)])
        axes.barh(
            places,
            shown,
            height=0.86 * height,
            color=style(number)[0],
            hatch=HATCHES[style(number)[1]],
            edgecolor="white",
            linewidth=0,
            label=metric,
        )
        for place, value, width, floor in zip(places, values, shown, _percent(random), strict=True):
            label = "no query" if value is None else f"{width:.1f}"
            axes.annotate(
                label,
                (max(width, floor), place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                size=6.5,
                color=INK,
            )
        ticks = [(100 * each, place) for each, place in zip(random, places, strict=True) if each is not None]
        if ticks:
            axes.vlines(
                [value for value, _ in ticks],
                [place - 0.43 * height for _, place in ticks],
                [place + 0.43 * height for _, place in ticks],
                color=INK,
                linewidth=1.6,
            )
    axes.set_yticks(range(len(lines)), [name for name, _, _ in lines])
    axes.invert_yaxis()
    axes.set_ylim(len(lines) - 0.45, -0.55)
    axes.set_xlim(0, 1.12 * largest or 1)
    axes.set_xlabel("%", size=8)
    quiet_axes(axes)
    axes.tick_params(axis="y", length=0)
    if any(floor.get(metric) is not None for _, _, floor in lines for metric in metrics):
        axes.plot(
            [], [], linestyle="", marker="|", markersize=9, markeredgewidth=1.6, color=INK, label="random"
        )
    legend_below(axes, 5)


def legend_below(axes: Axes, most: int) -> None:
    """The legend below the axes, the random ranker last, in as many columns as the picture can hold."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: labels[place] == "random")
    figure = cast("Figure", axes.figure)
    for columns in range(min(most, len(labels)), 0, -1):
        legend = figure.legend(
            [handles[place] for place in order],
            [labels[place] for place in order],
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=8,
        )
        if columns == 1 or not _too_wide(legend, figure):
            break
        legend.remove()
    lines = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * (lines - 1))


def _percent(values: Sequence[float | None]) -> list[float]:
    return [100 * (value or 0.0) for value in values]
