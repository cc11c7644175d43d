"""`cir embeddings list` and `cir embeddings rm`: what the embedding store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_metrics.terminal import echo
from submissions.commands.words import as_text

if TYPE_CHECKING:
    from submissions.embeddings.store import Stored


def embeddings_commands() -> typer.Typer:
    """The group `cir embeddings`."""
    group = typer.Typer(
        help="Embeddings: vectors of galleries that are kept below CIR_CACHE_HOME.", no_args_is_help=True
    )
    group.command("list")(list_embeddings)
    group.command("rm")(remove_embeddings)
    return group


def list_embeddings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object an entry.")] = False,
) -> None:
    """List the embeddings: key, images that are done, missing images, MiB on disk, gallery, encoder.

    \b
    Example:
        cir embeddings list
    """
    from submissions.embeddings.store import EmbeddingStore

    store = EmbeddingStore()
    found = store.list()
    if as_json:
        echo(as_text([_as_dict(one) for one in found]))
        return
    rows = [("KEY", "IMAGES", "MISSING", "MIB", "GALLERY", "ENCODER")]
    rows += [_row(one) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:5], widths, strict=True)]
        echo("  ".join([*cells, row[5]]).rstrip())
    echo(f"cir: {store.root}: {len(found):,} in all", err=True)


def remove_embeddings(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Keys of `cir embeddings list`.")
    ] = None,
    remove_all: Annotated[bool, typer.Option("--all", help="Remove every entry.")] = False,
) -> None:
    """Remove embeddings; cir embed and cir run make them anew.

    \b
    Example:
        cir embeddings rm 3f0c9a5be1d24f6680aa41c7
        cir embeddings rm --all
    """
    from cir_metrics.errors import CallError
    from submissions.embeddings.store import EmbeddingStore

    if bool(keys) == remove_all:
        raise CallError("name the entries to remove, or all. Fix: add KEY (cir embeddings list), or --all.")
    store = EmbeddingStore()
    for key in keys or [one.key for one in store.list()]:
        echo(f"{key}: {_mib(store.remove(key))} MiB freed")


def _as_dict(one: Stored) -> dict[str, Any]:
    return {
        "key": one.key,
        "gallery": one.pictures,
        "images": one.images,
        "done": one.done,
        "missing": one.missing,
        "bytes": one.num_bytes,
        "encoder": None if one.identity is None else one.identity.to_dict(),
    }


def _row(one: Stored) -> tuple[str, str, str, str, str, str]:
    done = f"{one.images:,}" if one.done == one.images else f"{one.done:,} of {one.images:,}"
    if one.identity is None:
        return (one.key, "-", "-", _mib(one.num_bytes), "-", "its description is damaged")
    return (
        one.key,
        done,
        f"{one.missing:,}",
        _mib(one.num_bytes),
        one.pictures,
        one.identity.text(),
    )


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):,.1f}"
