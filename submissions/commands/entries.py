"""`cir entries`: the shipped rank files, those without weights made on this machine and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.common.terminal import echo
from submissions.commands import as_text
from submissions.commands.outputs import check_folder

if TYPE_CHECKING:
    from submissions.entries.make import Placed


def entries_command(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Where to write: the folder of the rank files; made if missing."),
    ],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON: one object a file: file, benchmark, method, origin, same, command."
        ),
    ] = False,
) -> None:
    """Make the baselines of shapes that need no weights, and compare them with the shipped rank files.

    Those of the shapes encoder, which need torch, are copied from the package. Files that are there already
    and are the shipped ones are kept, so that a second call, or one after Ctrl-C, makes what is missing. The
    names of those made are printed, one a line, with what each is; one that differs is not an error.

    \b
    Example:
        cir entries --out baselines
        cir leaderboard add --baseline baselines/*.json.gz
    """
    from cir_metrics.errors import CallError
    from submissions.entries import folder
    from submissions.entries.make import place_entries

    check_folder(out)
    if out.resolve() == folder().resolve():
        raise CallError(f"--out {out} is the folder of the shipped files. Fix: name another one.")
    echo("Ranking shapes by the methods that need no weights ...", err=True)
    placed = []
    for each in place_entries(out):
        placed.append(each)
        if each.origin != "copied" and not as_json:
            echo(_line(each))
    if as_json:
        echo(as_text([_fields(each) for each in placed]))
    echo(_summary(placed), err=True)


def _line(each: Placed) -> str:
    made = "made here" if each.origin == "made" else "made earlier"
    return f"{each.path}  {made}, {'same as shipped' if each.same else 'DIFFERS from the shipped one'}"


def _fields(each: Placed) -> dict[str, object]:
    entry = each.entry
    return {
        "file": str(each.path),
        "benchmark": entry.benchmark,
        "method": entry.method,
        "origin": each.origin,
        "same": each.same,
        "command": entry.command,
    }


def _summary(placed: list[Placed]) -> str:
    here = [each for each in placed if each.origin != "copied"]
    differ = [each for each in here if not each.same]
    copied = f"{len(placed) - len(here)} of the shapes encoder are copied from the package."
    if not differ:
        return f"{len(here)} rank files made on this machine, all the same as shipped; {copied}"
    names = ", ".join(each.entry.file for each in differ)
    first = differ[0]
    return (
        f"{len(here)} rank files made on this machine; {len(differ)} differ from the shipped ones: {names}; "
        f"{copied} What differs: cir compare {first.path} {first.entry.path}"
    )
