"""A comparison as a picture: each difference with its interval (forest plot; Lewis and Clarke, BMJ 2001)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.plots import INK, QUIET, empty_figure, quiet_axes
from cir_metrics.errors import CallError
from submissions.report.plots import PADS, plot_path, save_plot
from submissions.scoring.score_report import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIRST, _SECOND = "#0072b2", "#d55e00"
"""First method better, second better; colours that colour-blind readers can distinguish (Okabe and Ito)."""

_WIDTH, _ROW, _AROUND = 7.2, 0.21, 1.1
"""Inches: of the picture, of a row, and above and below the rows."""

MOST_ROWS = 300
_LONGEST_NAME = 38


@dataclass(frozen=True)
class Drawn:
    """A difference as it is drawn.

    Args:
        difference: a fraction, or of ranks a difference of ranks; so are both ends of its interval.
        low: the lower end.
        high: the upper end.
        significant: whether its mark is full.
    """

    difference: float
    low: float
    high: float
    significant: bool


Row = tuple[str, Drawn | None]
"""What stands at the left, and what is drawn; a heading has nothing."""


def write_forest(
    path: str | Path, shares: Sequence[Row], ranks: Sequence[Row], *, title: str, note: str
) -> Path:
    """Draw differences: a row each, with the interval and the numbers; 0 means that both are equal.

    Args:
        path: the file, `.png` or `.svg`; text in an SVG stays text.
        shares: differences of fractions, drawn in percentage points.
        ranks: differences of ranks, where smaller is better; they have axes of their own.
        title: above the picture.
        note: below it.

    Returns:
        The file's absolute path.

    Raises:
        CallError: the name ends in neither, or there are more than 300 rows.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the file cannot be written.
    """
    path = plot_path(path)
    panels = [(unit, rows) for unit, rows in (("shares", shares), ("ranks", ranks)) if rows]
    number = sum(len(rows) for _, rows in panels)
    if number > MOST_ROWS:
        raise CallError(
            f"the picture would have {number:,} rows, and {MOST_ROWS} can be read. "
            "Fix: name fewer metrics (--metric) or fewer files."
        )
    figure = empty_figure(_WIDTH, number * _ROW + len(panels) * _AROUND, pads=PADS)
    heights = [len(rows) * _ROW + 0.5 for _, rows in panels]
    made = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (unit, rows) in zip(made[:, 0], panels, strict=True):
        _draw(axes, rows, ranks=unit == "ranks")
    figure.suptitle(title, size=10, color=INK)
    figure.supxlabel(note, size=7, color=INK)
    return save_plot(figure, path)


def heading(first: str, second: str) -> Row:
    """The row above the differences of a pair."""
    return f"{_short(first)} minus {_short(second)}", None


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
        low, high = unit * each.low, unit * each.high
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
        numbers = (each.difference, each.low, each.high)
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
