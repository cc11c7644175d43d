"""What every plot begins with: a figure that belongs to no window, two greys, and quiet axes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, QUIET = "#22262b", "#8a9099"
DPI = 150


def check_plots(extra: str) -> None:
    """Refuse a long work whose plots could not be drawn at its end.

    Args:
        extra: which brings what is missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise missing_extra("a plot", "matplotlib", extra)


def empty_figure(width: float, height: float, *, pads: tuple[float, float]) -> Figure:
    """An empty figure.

    Args:
        width: inches.
        height: inches.
        pads: inches around what is drawn, beside it and above it.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise missing_extra("a plot", "matplotlib", "statistics") from error
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=pads[0], h_pad=pads[1]))
    FigureCanvasAgg(figure)
    return figure


def quiet_axes(axes: Any) -> None:
    """Two spines instead of four, in grey, with small labels."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(QUIET)
    axes.tick_params(labelsize=7, colors=INK, color=QUIET)


def percent_axes(axes: Any, across: str) -> None:
    """Quiet axes with per cent from 0 to 100 upwards, and faint lines behind what is drawn.

    Args:
        axes: of a figure.
        across: what the other axis is called.
    """
    axes.set_xlabel(across, size=8)
    axes.set_ylabel("%", size=8, rotation=0, labelpad=8)
    axes.set_ylim(0, 102)
    quiet_axes(axes)
    axes.grid(axis="y", color="#e4e7ea", linewidth=0.6)
    axes.set_axisbelow(True)
