"""`cir validate`: everything that is wrong with a rank file or a transcript."""

from __future__ import annotations

import typer

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import FILE_HELP, Benchmark, as_text


class ValidateOptions(LoadsBenchmarks):
    """What `cir validate` takes."""

    file: str = argument(..., FILE_HELP)
    benchmark: Benchmark = None
    part: bool = option(False, "Accept one of the CIRR server's two files alone.")
    as_json: bool = option(False, "Print JSON: the findings.", "--json")


@command
def validate_command(options: ValidateOptions) -> None:
    """Check a rank file and print everything that is wrong with it; no ground truth is needed.

    Of a transcript (cir multiround) also what contradicts itself: rank against list, a reference that was
    never shown, a round after the end.

    The exit code is 0 where nothing refuses the file, else 1.

    \b
    Example:
        cir validate run.json
    """
    from submissions.formats import is_transcript
    from submissions.validation import validate

    if is_transcript(options.file):
        from submissions.transcripts.checking import check_transcript

        report = check_transcript(options.file, options.benchmark).report
    else:
        report = options.call(validate, part=True if options.part else None)
    echo(as_text(report.to_dict()) if options.as_json else report.text())
    if not report.ok:
        raise typer.Exit(1)
