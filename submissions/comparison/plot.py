"""A comparison as a picture: each difference with its interval (forest plot; Lewis and Clarke, BMJ 2001)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.plots import INK, QUIET, empty_figure, quiet_axes
from cir_metrics.errors import CallError
from submissions.report.plots import PADS, plot_path, save_plot
from submissions.scoring.score_report import is_rank, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

    from submissions.comparison.difference import Difference, Pair

_FIRST, _SECOND = "#0072b2", "#d55e00"
"""First method better, second better; colours that colour-blind readers can distinguish (Okabe and Ito)."""

_WIDTH, _ROW, _AROUND = 7.2, 0.21, 1.1
"""Inches: of the picture, of a row, and above and below the rows."""

MOST_ROWS = 300
_LONGEST_NAME = 38

Row = tuple[str, "Difference | None"]
"""What stands at the left, and the difference that is drawn; a heading has none."""


def write_forest(
    path: str | Path, pairs: Sequence[Pair], labels: Mapping[str, str], *, title: str, note: str
) -> Path:
    """See `Comparison.plot`: fractions are drawn in percentage points, and ranks have axes of their own.

    `labels` says by metric what its rows are called, in their order.
    """
    path = plot_path(path)
    panels = [rows for ranks in (False, True) if (rows := _rows(pairs, labels, ranks=ranks))]
    number = sum(len(rows) for rows in panels)
    if number > MOST_ROWS:
        raise CallError(
            f"the picture would have {number:,} rows, and {MOST_ROWS} can be read. "
            "Fix: name fewer metrics (--metric) or fewer files."
        )
    figure = empty_figure(_WIDTH, number * _ROW + len(panels) * _AROUND, pads=PADS)
    heights = [len(rows) * _ROW + 0.5 for rows in panels]
    made = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, rows in zip(made[:, 0], panels, strict=True):
        _draw(axes, rows)
    figure.suptitle(title, size=10, color=INK)
    figure.supxlabel(note, size=7, color=INK)
    return save_plot(figure, path)


def _rows(pairs: Sequence[Pair], labels: Mapping[str, str], *, ranks: bool) -> list[Row]:
    metrics = [metric for metric in labels if is_rank(metric) == ranks]
    rows: list[Row] = []
    for pair in pairs if metrics else ():
        rows.append((f"{_short(pair.first)} minus {_short(pair.second)}", None))
        rows += [(labels[metric], pair.differences[metric]) for metric in metrics]
    return rows


def _short(name: str) -> str:
    # Matplotlib takes what stands between two dollar signs for a formula.
    return textwrap.shorten(name, _LONGEST_NAME, placeholder="…").replace("$", r"\$")


def _draw(axes: Axes, rows: Sequence[Row]) -> None:
    inside = [(place, label, each) for place, (label, each) in enumerate(rows) if each is not None]
    ranks = is_rank(inside[0][2].metric)
    for place, (label, each) in enumerate(rows):
        if each is None:
            heading = _beside(axes, label, place, 0, 4, size=8, weight="bold")
            heading.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    for place, _, each in inside:
        unit = 1.0 if ranks else 100.0
        middle, low, high = (unit * value for value in (each.difference, *each.interval.ends))
        colour = QUIET if middle == 0 else _FIRST if each.first_is_better else _SECOND
        axes.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        face = colour if each.significant else "white"
        axes.plot([middle], [place], marker="o", markersize=5, color=colour, markerfacecolor=face)
        ends = (signed(each.metric, end) for end in each.interval.ends)
        _beside(axes, f"{signed(each.metric, each.difference)} [{', '.join(ends)}]", place, 1, 6, size=7)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=0)
    axes.set_yticks([place for place, _, _ in inside], [label for _, label, _ in inside])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    better = "to the left the first is better" if ranks else "to the right the first is better"
    axes.set_xlabel(f"{'ranks' if ranks else 'percentage points'}; {better}", size=8)
    axes.margins(x=0.06)
    quiet_axes(axes)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e4e7ea", linewidth=0.6)
    axes.set_axisbelow(True)


def _beside(axes: Axes, text: str, row: int, edge: int, points: int, **style: Any) -> Annotation:
    """A text at the left (0) or right (1) edge of a row, some points further on."""
    return axes.annotate(
        text,
        (edge, row),
        xycoords=("axes fraction", "data"),
        xytext=(points, 0),
        textcoords="offset points",
        va="center",
        color=INK,
        **style,
    )
