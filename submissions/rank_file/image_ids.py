"""Spellings of image ids that are accepted on input, and the one that is used from then on.

What another spelling is, `cir_metrics.ids` says; here stands what is known of each data set's ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cir_metrics.ids import spellings

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_COCO_DIGITS = 12
_OF_COCO = ("circo", "genecis")
"""Families whose images are COCO's."""
_CIRR_ENDING = ".png"
"""Its server's names come without, so that it says nothing even of an unknown image."""


def image_family(spec: BenchmarkSpec) -> str:
    """Name of the dataset whose images a benchmark ranks (CIRCLED ranks those of its source).

    Example:
        >>> from cir_datasets.registry import spec
        >>> image_family(spec("cirr/val"))
        'cirr'
    """
    return (spec.config.gallery_from or spec.id).partition("/")[0]


@dataclass(frozen=True)
class Spelling:
    """Brings ids to a benchmark's spelling; what it cannot read it leaves.

    Args:
        family: of `image_family`. COCO's ids are 12 digits, whether the gallery is known or not.
        known: the gallery's ids; empty where they are not known.

    Example:
        >>> Spelling("circo").all([355099, "528417", "unlabeled2017/000000534704.jpg", True])
        ['000000355099', '000000528417', '000000534704', True]
        >>> Spelling("cirr").all(["dev-0-0-img0.png"])
        ['dev-0-0-img0']
        >>> Spelling("mine", frozenset(["a/7.jpg"])).all(["x/a/7.jpg"])
        ['a/7.jpg']
    """

    family: str
    known: Set[str] = frozenset()

    def changes(self, ids: Iterable[Any]) -> dict[Any, str]:
        """By id another spelling that is used from then on."""
        digits = _COCO_DIGITS if self.family in _OF_COCO else None
        return spellings(ids, self.known, digits=digits, ending=_CIRR_ENDING if self.family == "cirr" else "")

    def all(self, ids: list[Any]) -> list[Any]:
        """The ids, in their order."""
        changed = self.changes(ids)
        return (
            [changed.get(each, each) if isinstance(each, str | int) else each for each in ids]
            if changed
            else ids
        )


def well_formed(family: str, image_id: str) -> bool:
    """Whether an id can be one of the family's at all: what is checked when the gallery is not available."""
    return family not in _OF_COCO or (
        len(image_id) == _COCO_DIGITS and image_id.isascii() and image_id.isdigit()
    )


def near_miss(given: str, known: Iterable[str]) -> str | None:
    """The known id that was probably meant: the same in another case, or with blanks around it.

    Example:
        >>> near_miss(" DEV-0-0-img0.jpg", frozenset(["dev-0-0-img0"]))
        'dev-0-0-img0'
    """
    pool = known if isinstance(known, Set) else frozenset(known)
    text = given.strip()
    for written in (text, text.upper(), text.lower()):
        if written in pool:
            return written
        if found := spellings([written], pool):
            return found[written]
    return None
