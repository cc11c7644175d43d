"""`cir datasets images` and `cir datasets hash`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cir_datasets.commands import Json, ReadsBenchmarks, argument, benchmark_values, command, option
from cir_datasets.common.terminal import echo

_Root = Annotated[list[Path] | None, typer.Option("--root", hidden=True, help="The same as --images.")]


class TakesImages(ReadsBenchmarks):
    """Which images are looked at, and where they lie."""

    benchmark: str = argument(
        ..., "A benchmark's id (cirr/val).", metavar="ID", autocompletion=benchmark_values
    )
    images: list[Path] | None = option(
        None,
        "Folder of the images, in the publisher's layout, or its parent; may be given several "
        "times; default: below CIR_IMAGES.",
    )
    root: _Root = None
    workers: int | None = option(
        None, "Workers: files read at once; default: the number of processors.", min=1
    )
    as_json: Json = False

    @property
    def named(self) -> dict[str, Any]:
        """What the functions call otherwise."""
        return {
            "benchmark_id": self.benchmark,
            "roots": self.images or self.root,
            "verification_mode": self.verification_mode,
        }


class CoverageOptions(TakesImages):
    """What `cir datasets images` takes."""

    open_files: bool = option(False, "Decode every image too, to find the damaged ones.", "--open")


@command
def cover_images(options: CoverageOptions) -> None:
    """Say which of a benchmark's images are in a folder; exit 1 if any is missing, empty or unreadable.

    \b
    Example:
        cir datasets images cirr/val --images ~/nlvr2
        cir datasets images fashioniq/dress_val --images ~/fashion-iq --open --json
    """
    from cir_datasets.images.coverage import image_coverage

    coverage = options.call(image_coverage, **options.named)
    echo(json.dumps(coverage.to_dict(), indent=2) if options.as_json else coverage.text())
    raise typer.Exit(0 if coverage.complete else 1)


class HashOptions(TakesImages):
    """What `cir datasets hash` takes."""

    out: Path | None = option(None, "Where to write: Parquet; default: where hashed_manifest looks.", "-o")
    allow_missing: bool = option(False, "Go on where something is missing: its fields are null.")


@command
def hash_benchmark_images(options: HashOptions) -> None:
    """Fill sha256, size, width and height of every image into a manifest, and report equal images.

    A run that was stopped goes on where it was. Exit 1 if an image is missing (and that is not allowed),
    unreadable, or not the publisher's where that is known.

    \b
    Example:
        cir datasets hash cirr/val --images ~/nlvr2
        cir datasets hash circo/val --workers 8 --out circo_val.parquet
    """
    from cir_datasets.images.hashes import hash_images

    report = options.call(hash_images, **options.named)
    echo(json.dumps(report.to_dict(), indent=2) if options.as_json else report.text())
    raise typer.Exit(0 if report.sound else 1)
