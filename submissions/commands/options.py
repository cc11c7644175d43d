"""Options that several commands of methods have, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MethodName = Annotated[
    str,
    typer.Option(
        "--method", "-m", help="Name of the method (cir methods list), or module:Class of your own."
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        help="Encoder: a name on the Hub, a folder, or shapes (the shipped one, the default on shapes).",
    ),
]
Images = Annotated[
    Path | None,
    typer.Option("--images", help="Folder of the images; default: below CIR_IMAGES. Shapes are drawn."),
]
CaptionRule = Annotated[
    str | None,
    typer.Option("--caption-rule", help="How several captions become text; default: strip_capitalize_and."),
]
Normalise = Annotated[
    bool,
    typer.Option("--normalise/--no-normalise", help="Whether queries have length 1 before they are added."),
]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="The method's own trained weights, file or folder.")
]
Revision = Annotated[
    str | None, typer.Option("--revision", help="The encoder's commit, branch or tag on the Hub.")
]
Device = Annotated[
    str, typer.Option("--device", help="Where the encoder runs: auto, cpu, cuda, cuda:1, mps.")
]
Dtype = Annotated[
    str, typer.Option("--dtype", help="The encoder's numbers: float32, float16, bfloat16 or auto.")
]
BatchSize = Annotated[int, typer.Option("--batch-size", help="Images or texts that are encoded at once.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes that read images.")]
SkipMissing = Annotated[
    bool,
    typer.Option(
        "--skip-missing",
        help="Rank images that cannot be read last instead of refusing; the signature says so.",
    ),
]
