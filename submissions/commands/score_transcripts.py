"""`cir score` of transcripts; in a file of its own: rank files need none of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from submissions.commands.words import as_text
from submissions.rank_file.findings import RefusedError
from submissions.report.selection import selected
from submissions.scoring.intervals import intervals
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.report import SideBySide, transcript_report

if TYPE_CHECKING:
    from submissions.report.document import Report
    from submissions.transcripts.scoring import TranscriptScore


def score_transcripts(
    files: Sequence[str],
    benchmark: str | None,
    format: str,
    resampled: tuple[int, int] | None,
    plot: Path | None,
    *,
    allow_missing: bool,
    metrics: Sequence[str] = (),
) -> None:
    """Print the numbers of one transcript by round, or of several side by side.

    Args:
        files: their paths.
        benchmark: what they must have been played on, or None for what they say themselves.
        format: of `cir_datasets.common.tables.FORMATS`.
        resampled: draws and seed of the intervals; None for none.
        plot: a picture to draw as well, or None.
        allow_missing: leave out sessions that are missing.
        metrics: those to show, of one transcript; none: all.

    Raises:
        RefusedError: something is wrong with a file; with `json` its findings are printed first.
        CallError: the files were played on different benchmarks, or metrics are named for several files.
    """
    if metrics and len(files) > 1:
        raise CallError(
            "--metric is for one transcript here. Fix: compare several with  cir compare, which takes it too."
        )
    try:
        scores = [check_transcript(file, benchmark).score(allow_missing=allow_missing) for file in files]
    except RefusedError as error:
        if format == "json":
            echo(as_text(error.report.to_dict()))
        raise
    for score in scores:
        for note in score.report.notes():
            echo(note, err=True)
    report = _shown(scores, resampled)
    if metrics and not isinstance(report, SideBySide):
        report = selected(report, metrics)
    if plot is not None:
        echo(f"{report.plot(plot)}: drawn", err=True)
    echo(report.render(format))


def _shown(scores: Sequence[TranscriptScore], resampled: tuple[int, int] | None) -> SideBySide | Report:
    played = list(dict.fromkeys(score.report.benchmark for score in scores))
    if len(played) > 1:
        raise CallError(
            f"the transcripts were played on {' and '.join(played)}. Fix: put those of one side by side."
        )
    bands = None
    if resampled is not None:
        draws, seed = resampled
        bands = [intervals(score.report, draws=draws, seed=seed) for score in scores]
    if len(scores) > 1:
        return SideBySide(scores, bands)
    return transcript_report(scores[0], None if bands is None else bands[0])
