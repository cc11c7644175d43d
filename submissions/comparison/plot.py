"""A comparison as a picture: each difference with its interval (forest plot; Lewis and Clarke, BMJ 2001)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.plots import INK, QUIET, empty_figure, quiet_axes
from cir_metrics.errors import CallError
from submissions.comparison.result import signed
from submissions.report.plots import PADS, plot_path, save_plot
from submissions.scoring.score_report import is_rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from submissions.comparison.result import Comparison, Difference

_FIRST, _SECOND = "#0072b2", "#d55e00"
"""The first method is better, the second is: told apart by people who see few colours (Okabe and Ito)."""

_WIDTH, _ROW, _AROUND = 7.2, 0.21, 1.1
"""Inches: of the picture, of a row, and above and below the rows."""

_MOST_ROWS = 300
_LONGEST_NAME = 38

Row = tuple[str, "Difference | None"]
"""What stands at the left, and the difference of its row; a heading has none."""


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Draw a comparison: a row a metric of a pair, with the difference, its interval and the numbers.

    The line at 0 is no difference. A full mark is significant after Holm's correction, an open one is not; an
    interval is not corrected, so that it may leave 0 out beside an open mark. Ranks, where smaller is better,
    have axes of their own.

    Args:
        comparison: from `submissions.compare`.
        path: the file, `.png` or `.svg`; text in an SVG stays text.

    Returns:
        The file's absolute path.

    Raises:
        CallError: the name ends in neither, or there are more than 300 rows.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the file cannot be written.
    """
    path = plot_path(path)
    return save_plot(_drawn(comparison), path)


def _drawn(comparison: Comparison) -> Figure:
    panels = [
        (ranks, rows)
        for ranks in (False, True)
        if (rows := _rows(comparison, [each for each in comparison.metrics if is_rank(each) == ranks]))
    ]
    number = sum(len(rows) for _, rows in panels)
    if number > _MOST_ROWS:
        raise CallError(
            f"the picture would have {number:,} rows, of {comparison.family}; {_MOST_ROWS} can be read. "
            "Fix: name fewer metrics (--metric) or fewer files."
        )
    height = number * _ROW + len(panels) * _AROUND
    figure = empty_figure(_WIDTH, height, pads=PADS)
    made = figure.subplots(
        len(panels), 1, squeeze=False, height_ratios=[len(rows) * _ROW + 0.5 for _, rows in panels]
    )
    for axes, (ranks, rows) in zip(made[:, 0], panels, strict=True):
        _draw(axes, rows, ranks=ranks)
    level = f"{100 * (1 - comparison.alpha):g} %"
    figure.suptitle(
        f"{comparison.benchmark}, {comparison.n:,} {comparison.unit}: difference with {level} interval",
        size=10,
        color=INK,
    )
    figure.supxlabel(
        f"full mark: significant, Holm over {comparison.family}, alpha {comparison.alpha:g}; open mark: not",
        size=7,
        color=INK,
    )
    return figure


def _rows(comparison: Comparison, metrics: Sequence[str]) -> list[Row]:
    if not metrics:
        return []
    rows: list[Row] = []
    for pair in comparison.pairs:
        rows.append((f"{_short(pair.first)} minus {_short(pair.second)}", None))
        # A mean of four metrics would take half of the picture.
        rows += [
            (metric if metric in comparison.signatures else "main", pair.differences[metric])
            for metric in metrics
        ]
    return rows


def _short(name: str) -> str:
    # Matplotlib takes what stands between two dollar signs for a formula.
    return textwrap.shorten(name, _LONGEST_NAME, placeholder="…").replace("$", r"\$")


def _draw(axes: Axes, rows: Sequence[Row], *, ranks: bool) -> None:
    unit = 1.0 if ranks else 100.0
    for place, (label, each) in enumerate(rows):
        if each is None:
            axes.annotate(
                label,
                (0, place),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                size=8,
                weight="bold",
                color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
            continue
        low, high = unit * each.interval.low, unit * each.interval.high
        middle = unit * each.difference
        first_is_better = middle < 0 if ranks else middle > 0
        colour = QUIET if middle == 0 else _FIRST if first_is_better else _SECOND
        axes.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot(
            [middle],
            [place],
            marker="o",
            markersize=5,
            color=colour,
            markerfacecolor=colour if each.significant else "white",
        )
        numbers = (each.difference, each.interval.low, each.interval.high)
        shown, *ends = (signed("mean_rank" if ranks else "", value) for value in numbers)
        axes.annotate(
            f"{shown} [{', '.join(ends)}]",
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            size=7,
            color=INK,
        )
    axes.axvline(0, color=INK, linewidth=0.8, zorder=0)
    inside = [place for place, (_, each) in enumerate(rows) if each is not None]
    axes.set_yticks(inside, [rows[place][0] for place in inside])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    better = "to the left the first is better" if ranks else "to the right the first is better"
    axes.set_xlabel(f"{'ranks' if ranks else 'percentage points'}; {better}", size=8)
    axes.margins(x=0.06)
    quiet_axes(axes)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e7ea", linewidth=0.6)
    axes.set_axisbelow(True)
