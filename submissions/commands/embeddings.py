"""`cir embeddings list`, `verify` and `rm`: what the embedding store holds, and whether it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cir_datasets.common.terminal import echo, fitted
from submissions.commands import as_text

if TYPE_CHECKING:
    from submissions.embeddings.store import EmbeddingStore, Stored


def embeddings_commands() -> typer.Typer:
    """The group `cir embeddings`."""
    group = typer.Typer(
        help="Embeddings: vectors of galleries that are kept below CIR_CACHE_HOME.", no_args_is_help=True
    )
    group.command("list")(list_embeddings)
    group.command("verify")(verify_embeddings)
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
    head = ("KEY", "IMAGES", "MISSING", "MIB", "GALLERY", "ENCODER")
    echo(fitted([head, *map(_row, found)]))
    echo(f"cir: {store.root}: {len(found):,} in all", err=True)


def verify_embeddings(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Keys of `cir embeddings list`.")
    ] = None,
    verify_all: Annotated[bool, typer.Option("--all", help="All: every entry.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: an object an entry, damage as sentences.")
    ] = False,
) -> None:
    """Read embeddings and compare them with their checksums; exit 1 where some are damaged, with their rows.

    Images that are still to do are not damage: cir embed goes on with them.

    \b
    Example:
        cir embeddings verify 3f0c9a5be1d24f6680aa41c7
        cir embeddings verify --all
    """
    from submissions.embeddings.store import EmbeddingStore

    store = EmbeddingStore()
    chosen = _chosen(store, keys, "verify", every=verify_all)
    damage = {key: store.damage(key) for key in chosen}
    entries = {one.key: one for one in store.list()}
    if as_json:
        echo(as_text([{**_as_dict(entries[key]), "damage": damage[key]} for key in chosen]))
    else:
        for key in chosen:
            if damage[key]:
                echo("\n".join(f"{key}: {text}" for text in damage[key]))
            else:
                echo(f"{key}: no damage, {_done(entries[key])} images")
    damaged = sum(map(bool, damage.values()))
    echo(f"cir: {store.root}: {damaged:,} of {len(chosen):,} entries are damaged", err=True)
    if damaged:
        raise typer.Exit(1)


def remove_embeddings(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY...", help="Keys of `cir embeddings list`.")
    ] = None,
    remove_all: Annotated[bool, typer.Option("--all", help="All: every entry.")] = False,
) -> None:
    """Remove embeddings; cir embed and cir run make them anew.

    \b
    Example:
        cir embeddings rm 3f0c9a5be1d24f6680aa41c7
        cir embeddings rm --all
    """
    from submissions.embeddings.store import EmbeddingStore

    store = EmbeddingStore()
    for key in _chosen(store, keys, "remove", every=remove_all):
        echo(f"{key}: {_mib(store.remove(key))} MiB freed")


def _chosen(store: EmbeddingStore, keys: list[str] | None, verb: str, *, every: bool) -> list[str]:
    from cir_metrics.errors import CallError

    if bool(keys) == every:
        raise CallError(f"name the entries to {verb}, or all. Fix: add KEY (cir embeddings list), or --all.")
    return keys or [one.key for one in store.list()]


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


def _done(one: Stored) -> str:
    return f"{one.images:,}" if one.done == one.images else f"{one.done:,} of {one.images:,}"


def _row(one: Stored) -> tuple[str, str, str, str, str, str]:
    if one.identity is None:
        return (one.key, "-", "-", _mib(one.num_bytes), "-", "cannot be read: cir embeddings verify says why")
    return (
        one.key,
        _done(one),
        f"{one.missing:,}",
        _mib(one.num_bytes),
        one.pictures,
        one.identity.text(),
    )


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):,.1f}"
