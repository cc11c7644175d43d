"""`cir receipt`: receipts of leaderboards, checked here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.common.terminal import echo
from cir_datasets.errors import missing_extra
from cir_metrics.errors import CallError


def receipt_commands() -> typer.Typer:
    """The group `cir receipt`."""
    group = typer.Typer(
        no_args_is_help=True, help="Receipts of leaderboards: the proof that a file was sent."
    )
    group.callback()(lambda: None)  # or its only command would take the group's place
    group.command("verify")(verify_receipt)
    return group


def verify_receipt(
    receipt: Annotated[Path, typer.Argument(help="The receipt, as JSON.")],
    file: Annotated[Path | None, typer.Argument(help="The rank file that it is for.")] = None,
    key: Annotated[
        Path | None, typer.Option(help="The server's public key in PEM, as it answers at /api/key.")
    ] = None,
) -> None:
    """Check a receipt's signature, and that a file is the one that was sent; nothing is asked of any server.

    Without --key it is checked with the key inside the receipt: nobody has changed it since it was signed,
    but anybody may have signed it.

    \b
    Example:
        cir receipt verify receipt.json run.json --key key.pem
    """
    if find_spec("cryptography") is None:
        raise missing_extra("cir receipt verify", "cryptography", "leaderboard")
    from leaderboard.identity.receipts import verify

    for path in filter(None, (receipt, file, key)):
        if not path.is_file():
            raise CallError(f"{path}: no such file. Fix: name a file that exists.")
    found = verify(receipt.read_bytes(), str(receipt), file, key)
    echo(f"receipt {found.id}: {found.server!r} took a file for {found.board} on {found.received_at}")
    echo(f"key {found.key_id}: its signature fits" + ("" if key is None else f", and it is the key in {key}"))
    echo(f"file: {found.size} bytes, sha256 {found.sha256}" + ("" if file is None else f", as {file} is"))
    if key is None:
        echo("Anybody may have signed it. Fix: give its server's key, from /api/key, with --key.", err=True)
