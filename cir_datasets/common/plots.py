"""What every plot begins with: a figure that belongs to no window, two greys, and quiet axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cir_metrics.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, QUIET = "#22262b", "#8a9099"
DPI = 150


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
        raise MissingExtraError(
            'plots need matplotlib, which is not installed. Fix: pip install "cir-benchmarks[statistics]".'
        ) from error
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
