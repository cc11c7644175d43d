"""`cir datasets images` and `cir datasets hash`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cir_datasets.commands import DataDir, Json, NoChecks, benchmark_values, mode_of
from cir_datasets.common.terminal import echo

_Id = Annotated[
    str, typer.Argument(metavar="ID", autocompletion=benchmark_values, help="A benchmark's id (cirr/val).")
]
_Images = Annotated[
    list[Path] | None,
    typer.Option(
        "--images",
        help="Folder of the images, in the publisher's layout, or its parent; may be given several "
        "times; default: below CIR_IMAGES.",
    ),
]
_Root = Annotated[list[Path] | None, typer.Option("--root", hidden=True, help="The same as --images.")]
_Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Workers: files read at once; default: the number of processors."),
]


def cover_images(
    benchmark: _Id,
    images: _Images = None,
    root: _Root = None,
    open_files: Annotated[
        bool, typer.Option("--open", help="Decode every image too, to find the damaged ones.")
    ] = False,
    workers: _Workers = None,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
    as_json: Json = False,
) -> None:
    """Say which of a benchmark's images are in a folder; exit 1 if any is missing, empty or unreadable.

    \b
    Example:
        cir datasets images cirr/val --images ~/nlvr2
        cir datasets images fashioniq/dress_val --images ~/fashion-iq --open --json
    """
    from cir_datasets.images.coverage import image_coverage

    coverage = image_coverage(
        benchmark,
        images or root,
        open_files=open_files,
        workers=workers,
        data_dir=data_dir,
        verification_mode=mode_of(no_checks),
    )
    echo(json.dumps(coverage.to_dict(), indent=2) if as_json else coverage.text())
    raise typer.Exit(0 if coverage.complete else 1)


def hash_benchmark_images(
    benchmark: _Id,
    images: _Images = None,
    root: _Root = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write: Parquet; default: where hashed_manifest looks."),
    ] = None,
    workers: _Workers = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Go on where something is missing: its fields are null.")
    ] = False,
    data_dir: DataDir = None,
    no_checks: NoChecks = False,
    as_json: Json = False,
) -> None:
    """Fill sha256, size, width and height of every image into a manifest, and report equal images.

    A run that was stopped goes on where it was. Exit 1 if an image is missing (and that is not allowed),
    unreadable, or not the publisher's where that is known.

    \b
    Example:
        cir datasets hash cirr/val --images ~/nlvr2
        cir datasets hash circo/val --workers 8 --out circo_val.parquet
    """
    from cir_datasets.images.hashes import hash_images

    report = hash_images(
        benchmark,
        images or root,
        out=out,
        workers=workers,
        allow_missing=allow_missing,
        data_dir=data_dir,
        verification_mode=mode_of(no_checks),
    )
    echo(json.dumps(report.to_dict(), indent=2) if as_json else report.text())
    raise typer.Exit(0 if report.sound else 1)
