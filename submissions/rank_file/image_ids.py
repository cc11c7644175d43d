"""Spellings of image ids that are accepted on input, and the one that is used from then on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cir_datasets.registry.cards import BenchmarkSpec

_COCO_DIGITS = 12
_LONGEST = 1_000
"""Characters of an id that may be meant for another: each try copies it."""
_COCO = re.compile(r"[0-9]{1,12}(?:\.jpg)?")


def image_family(spec: BenchmarkSpec) -> str:
    """Name of the dataset whose images a benchmark ranks (CIRCLED ranks those of its source).

    Example:
        >>> from cir_datasets.registry import spec
        >>> image_family(spec("cirr/val"))
        'cirr'
    """
    return (spec.config.gallery_from or spec.id).partition("/")[0]


def normaliser(family: str) -> Callable[[list[Any]], list[Any]]:
    """A function that brings a ranking's ids to the benchmark's spelling; what it cannot read it leaves.

    CIRCO: integers, short forms and ".jpg" become 12 digits. CIRR: ".png" is dropped. Others: as they are.

    Example:
        >>> normaliser("circo")([355099, "528417", "000000534704.jpg", True])
        ['000000355099', '000000528417', '000000534704', True]
        >>> normaliser("cirr")(["dev-0-0-img0.png"])
        ['dev-0-0-img0']
    """
    return {"circo": _coco, "cirr": _without_png}.get(family, list)


def well_formed(family: str, image_id: str) -> bool:
    """Whether an id can be one of the family's at all: what is checked when the gallery is not available."""
    return family != "circo" or (len(image_id) == _COCO_DIGITS and image_id.isascii() and image_id.isdigit())


def near_miss(image_id: str, known: Iterable[str]) -> str | None:
    """The known id that was probably meant: the same without folders, file ending, or in another case.

    Example:
        >>> near_miss("./dev/dev-0-0-img0.jpg", frozenset(["dev-0-0-img0"]))
        'dev-0-0-img0'
    """
    if len(image_id) > _LONGEST:
        return None
    pool = known if isinstance(known, frozenset) else frozenset(known)
    name = PurePosixPath(image_id.strip().replace("\\", "/")).name
    stem = name.rpartition(".")[0] if "." in name else name
    for candidate in (image_id.strip(), name, stem):
        for spelling in (candidate, candidate.upper(), candidate.lower()):
            if spelling in pool:
                return spelling
    return None


def _coco(ids: list[Any]) -> list[Any]:
    return [_coco_id(value) for value in ids]


def _coco_id(value: Any) -> Any:
    if type(value) is int and 0 <= value < 10**_COCO_DIGITS:
        return f"{value:0{_COCO_DIGITS}d}"
    if type(value) is str and _COCO.fullmatch(value):
        return value.removesuffix(".jpg").zfill(_COCO_DIGITS)
    return value


def _without_png(ids: list[Any]) -> list[Any]:
    # An id that is the ending alone stays what it is: no other place would know what an empty one was.
    return [(value.removesuffix(".png") or value) if type(value) is str else value for value in ids]
