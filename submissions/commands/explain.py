"""`cir explain`: what any file says, valid or not, and its numbers under each reading."""

from __future__ import annotations

import typer

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from cir_metrics.errors import CallError
from submissions.commands import FILE_HELP, Benchmark, as_text


class ExplainOptions(LoadsBenchmarks):
    """What `cir explain` takes."""

    file: str | None = argument(None, FILE_HELP)
    benchmark: Benchmark = None
    numbers: str | None = option(
        None,
        "In place of a file, numbers of a row of a table, such as R@1=0.8,R@10=39.8: which protocols they "
        "fit; needs --benchmark.",
    )
    as_json: bool = option(False, "Print JSON: the whole record.", "--json")


@command
def explain_command(options: ExplainOptions) -> None:
    """Say what a file holds, valid or not, and its numbers under each way in which it may be meant.

    Which benchmark it answers, whose images it ranks, how deep, what is doubled or missing, where the
    reference stands; the metrics with the reference kept and removed, over the list of the split and the
    union, beside published rows that come near. A number behind >= is the least that it can be: lists of the
    file end before it.

    With --numbers, what a row of a table says of its protocol: for each it fits, does not fit, or cannot be
    told, and why.

    The exit code is 1 where the file cannot be read, else 0: what refuses it is explained.

    \b
    Example:
        cir explain run.json
        cir explain --numbers "R@1=0.8,R@10=39.8" --benchmark cirr/val
    """
    if options.numbers is not None:
        from submissions.explaining.numbers import explain_numbers

        if options.file is not None or options.benchmark is None:
            raise CallError("--numbers needs --benchmark and no file. Fix: say what benchmark, and no file.")
        found = explain_numbers(options.numbers, options.benchmark)
        echo(as_text(found.to_dict()) if options.as_json else found.text())
        return
    from submissions.explaining import explain

    if options.file is None:
        raise CallError("there is no file. Fix: cir explain FILE")
    explanation = options.call(explain)
    echo(as_text(explanation.to_dict()) if options.as_json else explanation.text())
    if not (explanation.rankings or explanation.report.ok):
        raise typer.Exit(1)
