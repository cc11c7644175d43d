"""`cir validate`: everything that is wrong with a rank file or a transcript."""

from __future__ import annotations

from typing import Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, NoChecksAnywhere
from cir_datasets.common.terminal import echo
from submissions.commands.options import Benchmark
from submissions.commands.words import FILE_HELP, as_text


def validate_command(
    file: Annotated[str, typer.Argument(help=FILE_HELP)],
    benchmark: Benchmark = None,
    part: Annotated[
        bool, typer.Option("--part", help="Accept one of the CIRR server's two files alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the findings.")] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
    """Check a rank file and print everything that is wrong with it; no ground truth is needed.

    Of a transcript (cir multiround) also what contradicts itself: rank against list, a reference that was
    never shown, a round after the end.

    The exit code is 0 where nothing refuses the file, else 1.

    \b
    Example:
        cir validate run.json
    """
    from submissions.formats.kinds import is_transcript
    from submissions.validation import validate

    if is_transcript(file):
        from submissions.transcripts.checking import check_transcript

        report = check_transcript(file, benchmark).report
    else:
        report = validate(file, benchmark, part=True if part else None)
    echo(as_text(report.to_dict()) if as_json else report.text())
    if not report.ok:
        raise typer.Exit(1)
