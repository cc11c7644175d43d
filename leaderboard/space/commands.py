"""`cir leaderboard space`, in a file of its own: the command line reads no Hub library before it is named."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.terminal import counted, echo
from cir_metrics.errors import CallError

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_SECRETS = re.compile(r"TOKEN|SECRET|PASSWORD|DATABASE|_KEY")
"""In the name of a variable whose value nobody may read."""


def space(
    repository: Annotated[
        str | None, typer.Argument(metavar="[OWNER/NAME]", help="The Space, made if need be.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="Another way to name the Space.", metavar="OWNER/NAME")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            help="Dataset repository that keeps entries and their files; made private if need be.",
            metavar="OWNER/NAME",
        ),
    ] = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option(
            "--prepare",
            help="Benchmarks whose boards open: CIR_PREPARE. Several in quotes, or repeated.",
            metavar="ID",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", help="A variable of the Space; repeatable.", metavar="NAME=VALUE"),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            help="A variable of this shell that becomes a secret of the Space; repeatable.",
            metavar="NAME",
        ),
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Push although entries end when the Space starts anew.")
    ] = False,
    dry_run: Annotated[
        Path | None,
        typer.Option("--dry-run", help="Write its files to this folder, and push nothing.", metavar="DIR"),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make what is new private: the Space.")] = False,
) -> None:
    """Put this leaderboard together as a Space of the Hugging Face Hub, and push it in one commit.

    It runs from a checkout of cir-benchmarks. The Space installs the versions of constraints.txt.

    \b
    Example:
        cir leaderboard space me/leaderboard --log me/leaderboard-log --prepare cirr/val --secret HF_TOKEN
        cir leaderboard space me/leaderboard --dry-run space
    """
    from cir_datasets.publishing.hub import check_repository
    from leaderboard import settings
    from leaderboard.space.assemble import Push, assemble, push

    named = {each for each in (repository, to) if each}
    if len(named) != 1:
        raise CallError("Name one Space. Fix: cir leaderboard space OWNER/NAME")
    (where,) = named
    check_repository("the Space", where)
    variables = _variables(given or ())
    if names := settings.to_prepare(" ".join(prepare or ())):
        variables[settings.PREPARE] = " ".join(names)
    if log is not None:
        check_repository("--log", log)
        variables[settings.LOG] = f"{settings.HUB_DATASETS}{log}"
    if dry_run is not None:
        written = assemble(dry_run)
        echo(f"{counted(len(written), 'file')} in {dry_run}; nothing was pushed.")
        echo(f"Try it: cd {dry_run} && pip install -r requirements.txt && python app.py", err=True)
        return
    secrets = {name: _secret(name) for name in secret or ()}
    if not ephemeral and not settings.lasts({**variables, **secrets}):
        raise CallError(
            "The disk of a Space is lost when it starts anew, and every entry with it. Fix: add  --log "
            "OWNER/NAME  and  --secret HF_TOKEN  (a token that may write there), or --ephemeral where "
            "nothing is to be kept."
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "space"
        assemble(folder)
        echo(push(folder, Push(where, private=private, log=log, variables=variables, secrets=secrets)))


def _variables(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise CallError(
                f"--set: {each[:80]!r} is not NAME=VALUE. Fix: write, say, --set CIR_PREPARE=cirr/val"
            )
        if _SECRETS.search(name):
            raise CallError(
                f"--set: everybody may read the variables of a Space, and {name} is a secret. "
                f"Fix: export {name} in this shell, and write  --secret {name}"
            )
        found[name] = value
    return found


def _secret(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise CallError(
            f"--secret {name}: is not set in this shell. Fix: export {name}=... and run it again."
        )
    return value
