"""`cir score`: the numbers of a rank file, or of transcripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import argument, command, metric_values, option
from cir_datasets.common.terminal import echo
from submissions.commands import FILE_HELP, Benchmark, DrawsPlots, Resamples, as_text, write_rows

if TYPE_CHECKING:
    from submissions.report import Report
    from submissions.report.side_by_side import SideBySide
    from submissions.scoring.intervals import Intervals
    from submissions.scoring.score_report import ScoreReport


class ScoreOptions(Resamples, DrawsPlots):
    """What `cir score` takes."""

    files: list[str] = argument(
        ..., f"{FILE_HELP} Or one transcript of cir multiround, or several side by side."
    )
    benchmark: Benchmark = None
    metrics: list[str] | None = option(
        None,
        "Metric: one to score, such as recall@20 or, with a variant, "
        "pnr_map@10:released_code; may be repeated; default: all of the board.",
        "--metric",
        values=metric_values,
    )
    plot: Path | None = option(
        None,
        "Also draw a picture, .png, .svg or .pdf: Hits@K by turn, metrics by aspect, or the metrics.",
    )
    intervals: bool = option(
        False, "Also give 95 % bootstrap intervals over queries or sessions, never turns."
    )
    beside: tuple[str, str] | None = option(
        None,
        "Also split queries by what solves them: a rank file of the text alone, then one of the image alone.",
        metavar="TEXT IMAGE",
    )
    per_query: Path | None = option(
        None, "Also write one JSON object a query (fractions) to this .jsonl file."
    )
    allow_missing: bool = option(
        False,
        "Go on where something is missing: queries and turns without a ranking count as "
        "misses; never submittable.",
    )


@command
def score_command(options: ScoreOptions) -> None:
    """Validate a rank file and print its scores beside chance and baselines, by aspect and by turn.

    Every number has its signature. Of transcripts the numbers are by round. With --json a refused file
    prints what cir validate --json prints, and the exit code is 1.

    \b
    Example:
        cir score run.json --json
        cir score run.json --metric recall@20 --format latex --plot run.svg
        cir score ours.json --beside text_only.json image_only.json
        cir score average.jsonl latest.jsonl --intervals --plot rounds.svg
    """
    from submissions.rank_file.findings import RefusedError
    from submissions.report import full_report

    try:
        scores = _scored(options)
    except RefusedError as error:
        if options.printed == "json":
            echo(as_text(error.report.to_dict()))
        raise
    reports = [full_report(each, _intervals(options, each)) for each in scores]
    if options.metrics:
        from submissions.report.selection import selected

        reports = [selected(report, options.metrics) for report in reports]
    if options.beside is not None:
        reports = [_split(options, *reports)]
    for each in scores:
        for note in each.notes():
            echo(note, err=True)
    if options.per_query is not None:
        files = [{"file": each.score.file} if len(reports) > 1 else {} for each in reports]
        rows = [
            {**file, **row}
            for file, each in zip(files, reports, strict=True)
            for row in each.score.per_query or []
        ]
        write_rows(rows, options.per_query)
    shown: Report | SideBySide = reports[0]
    if len(reports) > 1:
        from submissions.report.side_by_side import SideBySide

        shown = SideBySide(reports)
    if options.plot is not None:
        echo(f"{shown.plot(options.plot)}: drawn", err=True)
    echo(shown.render(options.printed))


def _scored(options: ScoreOptions) -> list[ScoreReport]:
    """The score of a rank file, or those of transcripts on one benchmark."""
    from cir_metrics.errors import CallError
    from submissions.formats import are_transcripts
    from submissions.scoring import score

    rows, transcripts = options.per_query is not None, are_transcripts(options.files)
    if transcripts and options.beside is not None:
        raise CallError("transcripts are not split by modality. Fix: drop --beside.")
    if not transcripts:
        if len(options.files) > 1:
            raise CallError("several rank files are put side by side by cir compare. Fix: call that.")
        (file,) = options.files
        return [options.call(score, file=file, per_query=rows, metrics=options.metrics or ())]
    from submissions.transcripts.checking import check_transcript

    checked = (options.call(check_transcript, file=file) for file in options.files)
    scores = [options.call(each.score, per_query=rows) for each in checked]
    played = list(dict.fromkeys(each.benchmark for each in scores))
    if len(played) > 1:
        raise CallError(
            f"the transcripts were played on {' and '.join(played)}. Fix: put those of one side by side."
        )
    return scores


def _split(options: ScoreOptions, report: Report) -> Report:
    """The report with its hits by the modality that finds them alone."""
    from submissions.comparison.beside import beside
    from submissions.rank_file.model import LISTS, answer_of, runs_of
    from submissions.scoring import score
    from submissions.validation import read

    asked, sides = options.benchmark or report.score.benchmark, []
    for file in options.beside or ():
        # Without rankings of subsets it is scored as lists alone are: no metric of subsets has groups then.
        whole = runs_of(read(file, benchmark=asked))
        runs = [replace(run, format=LISTS) if run.subset_rankings is None else run for run in whole]
        sides.append(score(answer_of(asked, runs), asked, metrics=options.metrics or (), name=file))
        if lost := ", ".join(sides[-1].missing_metrics):
            echo(f"{file}: it holds no rankings for {lost}, which have no groups", err=True)
    text, image = sides
    split: Report = options.call(beside, report=report, text=text, image=image)
    return split


def _intervals(options: ScoreOptions, score: ScoreReport) -> Intervals | None:
    if not options.intervals:
        return None
    from submissions.scoring.intervals import intervals

    found: Intervals = options.call(intervals, report=score)
    return found
