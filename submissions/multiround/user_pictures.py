"""Pictures of one's own as a benchmark, in a file of its own: scoring what was played needs it alone."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError, SourceError
from submissions.embeddings.pictures import pictures_in

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

_LONGEST = 300
"""Characters of an image's id in a transcript."""


def user_pictures(folder: str | Path) -> Benchmark:
    """All pictures below a folder, as the gallery of a benchmark without queries.

    Dialogues on it start at random (`RoundSettings(start="random")`), and the pictures are found with
    `RunOptions(images=folder)`. Ids are paths below the folder.

    Args:
        folder: searched with its sub-folders.

    Raises:
        SourceError: no such folder, no picture in it, or a path that cannot be an id.
    """
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import Card
    from cir_datasets.rows.benchmark import Benchmark

    ids = pictures_in(folder).ids
    for image in ids:
        if len(image) > _LONGEST or not image.isprintable():
            raise SourceError(
                f"{folder}: {image[:_LONGEST]!r} cannot be an id, which has up to {_LONGEST} characters and "
                "all of them printable. Fix: rename it."
            )
    text = (resources.files("submissions") / "multiround" / "user_pictures.yaml").read_text("utf-8")
    card = read_model(Card, text, "user_pictures.yaml", CardError)
    return Benchmark.from_rows(BenchmarkSpec(card, "all"), [], ids, pinned=False)
