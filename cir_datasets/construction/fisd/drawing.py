"""Pictures of triplets: three of one seed, drawn by chunks on any engine, and kept with their hashes."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.stages import FAILED, Engine, Here, Row
from cir_datasets.construction.fisd.generators import Generator
from cir_datasets.construction.fisd.triplets import ROLES, gallery
from cir_datasets.construction.workspace import BENCHMARK, Workspace
from cir_datasets.errors import ConstructionError, DatasetError
from cir_datasets.registry.folder_card import PICTURES
from cir_datasets.shapes.draws import Draws

_SEEDS = 1 << 31


def picture_seed(seed: int, id: str, attempt: int) -> int:
    """The seed of a triplet's pictures, from 0 to 2**31 - 1."""
    return Draws("fisd pictures", seed, id, attempt).below(_SEEDS)


def drawn_by_seed(
    work: Workspace,
    stage: str,
    rows: Sequence[Row],
    attempts: Mapping[str, int],
    *,
    generator: Generator,
    seed: int,
    chunk: int,
    engine: Engine | None,
) -> list[Row]:
    """A stage of pictures.

    Args:
        work: the run; pictures go to its benchmark.
        stage: its name.
        rows: triplets with their three captions.
        attempts: by id how often pictures were drawn before.
        generator: draws them.
        seed: of the run.
        chunk: triplets that are drawn and kept at once.
        engine: where they are drawn; None is this process.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    items = [
        {
            "id": row["id"],
            "attempt": attempts[row["id"]],
            "seed": picture_seed(seed, row["id"], attempts[row["id"]]),
            "captions": [row["caption"], row["target_caption"], row["negative_caption"]],
            "images": _image_ids(seed, row["id"], attempts[row["id"]]),
        }
        for row in rows
    ]
    keeping = _Keeping(engine or Here(), work.folder / BENCHMARK / PICTURES)
    make = cast("Callable[[Sequence[Row]], list[Row]]", functools.partial(_draw, generator=generator))
    return work.rows_in_chunks(stage, items, make, size=chunk, engine=keeping)


def _image_ids(seed: int, id: str, attempt: int) -> list[str]:
    """Ids of reference, target and negative, which do not say which is which."""
    aspect, _, number = id.rpartition("_")
    ending = f"_redrawn{attempt}" if attempt else ""
    places = Draws("fisd names", seed, id).shuffled((1, 2, 3))
    return [f"{aspect}/{number}_{place}{ending}.png" for place in places]


class _Keeping:
    """An engine whose results bring files, which are written here before a chunk counts as done."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def map(self, work: Callable[[Any], Any], chunks: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Each chunk's number and rows."""
        for number, (rows, files) in self._engine.map(work, chunks):
            for name, content in files:
                with write_errors(self._folder / name, ConstructionError):
                    write_whole(self._folder / name, content)
            yield number, rows


def _draw(chunk: Sequence[Row], *, generator: Generator) -> tuple[list[Row], list[tuple[str, bytes]]]:
    """Rows of drawn triplets, and their files."""
    rows: list[Row] = []
    files: list[tuple[str, bytes]] = []
    for item in chunk:
        known = {"id": item["id"], "attempt": item["attempt"], "seed": item["seed"]}
        try:
            pictures = generator.draw(item["captions"], item["seed"])
        except DatasetError as error:
            rows.append({**known, FAILED: str(error).partition(" Fix: ")[0]})
            continue
        ids = dict(zip(ROLES, item["images"], strict=True))
        hashes = [hashlib.sha256(picture).hexdigest() for picture in pictures]
        if len(set(hashes)) < len(hashes):
            rows.append({**known, FAILED: "two of its pictures are the same"})
            continue
        files += zip(item["images"], pictures, strict=True)
        rows.append({**known, "images": ids, "sha256": dict(zip(ROLES, hashes, strict=True))})
    return rows, files


def check_pictures(folder: Path, drawn: Iterable[Row], queries: Sequence[Row]) -> None:
    """Check that the pictures of the queries are those that were drawn.

    Args:
        folder: of the run.
        drawn: rows of the stages of pictures.
        queries: rows of the benchmark.

    Raises:
        ConstructionError: one is gone or was changed.
    """
    hashes = {row["images"][role]: row["sha256"][role] for row in drawn if "images" in row for role in ROLES}
    for query in queries:
        for image in gallery([query]):
            path = folder / BENCHMARK / PICTURES / image
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != hashes[image]:
                raise ConstructionError(
                    f"{path}: it is not the picture that was drawn. Fix: put it back, or run "
                    f"`cir make again {folder} --from pictures`."
                )
