"""Hits@k by round, a line a transcript (FISD, figure 4); in a file of its own: matplotlib is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.plots import INK, empty_figure, percent_axes
from submissions.report.plots import MARKERS, PADS, legend_below, plot_path, save_plot, style

if TYPE_CHECKING:
    from submissions.scoring.intervals import Intervals
    from submissions.transcripts.scoring import TranscriptScore

_INCHES = (5.2, 3.4)


def write_lines(
    labels: Sequence[str],
    scores: Sequence[TranscriptScore],
    intervals: Sequence[Intervals] | None,
    path: str | Path,
) -> Path:
    """Draw a line a transcript.

    Args:
        labels: what the legend calls each.
        scores: on one benchmark.
        intervals: of each, for the bands, or None.
        path: the file, `.png` or `.svg`.

    Raises:
        CallError: the name ends in neither.
        MissingExtraError: matplotlib is not installed.
        SubmissionError: the file cannot be written.
    """
    path = plot_path(path)
    figure = empty_figure(*_INCHES, pads=PADS)
    axes = figure.add_subplot()
    for place, (label, score) in enumerate(zip(labels, scores, strict=True)):
        rounds = list(range(1, score.settings.max_rounds + 1))
        names = [f"hits@{score.settings.k}@turn{number}" for number in rounds]
        colour, marker = style(place)
        values = [100 * score.report.metrics[name] for name in names]
        axes.plot(rounds, values, color=colour, marker=MARKERS[marker], markersize=5, label=label)
        if intervals is not None:
            ends = [intervals[place].values[name] for name in names]
            lows, highs = [100 * each.low for each in ends], [100 * each.high for each in ends]
            axes.fill_between(rounds, lows, highs, color=colour, alpha=0.18, linewidth=0)
    axes.set_xticks(range(1, max(score.settings.max_rounds for score in scores) + 1))
    percent_axes(axes, "round")
    legend_below(axes, 1)
    cutoffs = sorted({score.settings.k for score in scores})
    hits = ", ".join(f"Hits@{k}" for k in cutoffs)
    figure.suptitle(f"{hits} by round on {scores[0].report.benchmark}", size=10, color=INK)
    return save_plot(figure, path)
