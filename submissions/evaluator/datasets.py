"""Queries and gallery images with their ids: what an evaluation encodes, for torch's DataLoader.

They need no torch themselves: they have what a map-style dataset has, length and items, and are pickled for
workers, spawned ones too. Pictures are opened when an item is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import MissingImagesError
from cir_datasets.registry.caption_rules import CaptionRule
from cir_datasets.registry.caption_rules import caption_rule as rule_named
from submissions.embeddings.pictures import FilePictures, pictures_of
from submissions.methods.turns import turns_of
from submissions.running.make import loaded_benchmark

if TYPE_CHECKING:
    from pathlib import Path

    from torch.utils.data import Dataset

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures

    _Dataset = Dataset[dict[str, Any]]
else:
    _Dataset = object

_NAMED = 5
"""Missing images that a message names."""

Transform = Callable[[Any], Any]


@dataclass(frozen=True)
class ImageDataset(_Dataset):
    """Gallery images: `{"image_id": ..., "image": ...}`, in the order of `ids`.

    Args:
        ids: id of each item.
        pictures: what opens them.
        transform: what becomes of a picture; None leaves a Pillow image.
    """

    ids: tuple[str, ...]
    pictures: Pictures
    transform: Transform | None = None

    def __len__(self) -> int:
        """Number of images."""
        return len(self.ids)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """One image, with its id."""
        return {"image_id": self.ids[place], "image": _opened(self.pictures, place, self.transform)}


@dataclass(frozen=True)
class QueryDataset(_Dataset):
    """Queries: `{"query_id": ..., "reference": ..., "text": ...}`, in the order of `ids`.

    Args:
        ids: id of each item; of a session's turn `SESSION#TURN`.
        texts: what the caption rule made of each one's captions.
        places: where the reference of each stands in `pictures`; -1 for a turn that has none.
        pictures: what opens the references.
        transform: what becomes of a picture; None leaves a Pillow image.
    """

    ids: tuple[str, ...]
    texts: tuple[str | tuple[str, ...], ...]
    places: tuple[int, ...]
    pictures: Pictures
    transform: Transform | None = None

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ids)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """One query, with its id; its reference is None where it has none."""
        at = self.places[place]
        reference = None if at < 0 else _opened(self.pictures, at, self.transform)
        return {"query_id": self.ids[place], "reference": reference, "text": self.texts[place]}


def query_dataset(
    benchmark: str | Benchmark,
    images: str | Path | None = None,
    transform: Transform | None = None,
    caption_rule: str | CaptionRule | None = None,
) -> QueryDataset:
    """The queries of a benchmark as a dataset: reference picture, text and id of each, in its order.

    Args:
        benchmark: its id, or a benchmark; of a suite each member.
        images: folder of the pictures, as for `cir run --images`; None looks below `CIR_IMAGES`.
        transform: from a Pillow image (RGB) to what a DataLoader can batch; for spawned workers picklable.
        caption_rule: how captions become text: a name, or what `caption_rule(name, spelling=FILE)` gives;
            None is `single`. A rule that makes several texts gives a tuple of them.

    Raises:
        UnknownNameError: no benchmark or rule has that name.
        CaptionRuleError: the rule is for one caption and there are several, or it lacks its dictionary.
        MissingImagesError: a picture has no file.
        SourceError: the benchmark's data, or the folder, is not available.

    Example:
        >>> dataset = query_dataset("shapes/val")
        >>> item = dataset[0]
        >>> len(dataset), item["query_id"], item["reference"].size
        (300, 'shapes_val_00000', (96, 96))
    """
    found = loaded_benchmark(benchmark)
    rule = caption_rule if isinstance(caption_rule, CaptionRule) else rule_named(caption_rule or "single")
    turns = [turn for row in found.rows() for turn in turns_of(row)]
    texts = [tuple(rule.texts(turn.captions)) for turn in turns]
    one = all(len(each) == 1 for each in texts)
    references = dict.fromkeys(turn.reference for turn in turns if turn.reference is not None)
    place = {image: at for at, image in enumerate(references)}
    return QueryDataset(
        tuple(turn.key for turn in turns),
        tuple(each[0] if one else each for each in texts),
        tuple(-1 if turn.reference is None else place[turn.reference] for turn in turns),
        _there(pictures_of(found, images=images, ids=list(references))),
        transform,
    )


def image_dataset(
    benchmark: str | Benchmark, images: str | Path | None = None, transform: Transform | None = None
) -> ImageDataset:
    """The gallery of a benchmark as a dataset: picture and id of each image, in the manifest's order.

    Args:
        benchmark: its id, or a benchmark; of a suite each member.
        images: folder of the pictures, as for `cir run --images`; None looks below `CIR_IMAGES`.
        transform: from a Pillow image (RGB) to what a DataLoader can batch; for spawned workers picklable.

    Raises:
        UnknownNameError: no benchmark has that id.
        MissingImagesError: a picture has no file.
        SourceError: the benchmark's data, its gallery's list, or the folder is not available.

    Example:
        >>> dataset = image_dataset("shapes/val")
        >>> len(dataset), dataset[0]["image"].size
        (3940, (96, 96))
    """
    pictures = _there(pictures_of(loaded_benchmark(benchmark), images=images))
    return ImageDataset(tuple(pictures.ids), pictures, transform)


def _there(pictures: Pictures) -> Pictures:
    """Pictures that all have a file: a worker would say so after minutes."""
    if isinstance(pictures, FilePictures):
        absent = [id_ for id_, path in zip(pictures.ids, pictures.paths, strict=True) if path is None]
        if absent:
            raise MissingImagesError(
                f"{pictures.name}: {len(absent):,} of {len(pictures.ids):,} images have no file below "
                f"{pictures.root}: {', '.join(absent[:_NAMED])}{', ...' if len(absent) > _NAMED else ''}. "
                "Fix: pass images= the folder that holds them in the publisher's layout, or get them."
            )
    return pictures


def _opened(pictures: Pictures, place: int, transform: Transform | None) -> Any:
    picture = pictures.open(place)
    return picture if transform is None else transform(picture)
