"""The pictures that pages show: what the package draws, and COCO's from its server for who asks."""

from __future__ import annotations

import functools
import io
import re
from typing import Any

from cir_datasets import registry
from cir_datasets.common.yaml import own_yaml
from cir_datasets.images.locate import image_card
from cir_datasets.registry import BenchmarkSpec
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.pages.site import COCO_PICTURES

_FOLDER = "site/pictures"
_PATH = re.compile(
    _FOLDER + r"/shapes/(?P<version>[0-9]{1,6})/(?P<image>(?P<split>[a-z]{1,20})-[0-9]{6})\.png"
)
_SPLIT = re.compile(r"[a-z]{1,20}(?=-[0-9]{6}\Z)")
_COCO_ID = re.compile("[0-9]{12}")
_KEPT = 2000
"""Pictures of about 2 KB each that a process keeps."""

MEDIA_TYPE = "image/png"


def picture_path(spec: BenchmarkSpec, image_id: str) -> str:
    """Path of a picture on this site, or empty where it may not be shown.

    The benchmark's version is part of it, so that a browser may keep the picture for ever.

    Args:
        spec: the benchmark.
        image_id: of its gallery.

    Example:
        >>> from cir_datasets.registry import spec
        >>> picture_path(spec("shapes/val"), "val-000123")
        'site/pictures/shapes/2/val-000123.png'
        >>> picture_path(spec("cirr/val"), "dev-1-0-img0")
        ''
    """
    card = image_card(spec)
    if card.source.publisher != "embedded" or not _SPLIT.match(image_id):
        return ""
    return f"{_FOLDER}/{card.name}/{card.version}/{image_id}.png"


def publishers_address(spec: BenchmarkSpec, image_id: str) -> str:
    """Where a picture's publisher shows it to anybody; empty where none does.

    Args:
        spec: the benchmark.
        image_id: of its gallery.

    Example:
        >>> from cir_datasets.registry import spec
        >>> publishers_address(spec("circo/val"), "000000271520").rpartition("/")[2]
        '000000271520.jpg'
    """
    coco = image_card(spec).name == "circo" and _COCO_ID.fullmatch(image_id)
    return f"{COCO_PICTURES}{image_id}.jpg" if coco else ""


@functools.lru_cache(_KEPT)
def picture(path: str) -> bytes:
    """A picture as PNG, 96 x 96.

    Args:
        path: from `picture_path`.

    Raises:
        UnknownNameError: there is no such picture, or no board ranks its gallery.
    """
    from cir_datasets import shapes

    found = _PATH.fullmatch(path)
    if found is None or (found["version"], found["split"]) not in _galleries():
        raise UnknownNameError(f"no picture {path[:80]!r}. Fix: take its address from a page of a query.")
    written = io.BytesIO()
    shapes.picture(found["image"]).save(written, "PNG")
    return written.getvalue()


def _galleries() -> set[tuple[str, str]]:
    """Version and split of the galleries that boards rank, and of the first page's example.

    To draw a picture of another, the gallery would be made first.
    """
    from cir_datasets.shapes import split_of

    specs = [spec for board in boards.boards() for spec in board.specs]
    return {
        (str(each.card.version), split_of(each.config_name).name)
        for each in (*specs, registry.spec(task_example()["benchmark"]))
        if each.card.source.publisher == "embedded"
    }


@functools.cache
def task_example() -> dict[str, Any]:
    """The query that explains the task on the first page, with the paths of its pictures."""
    found: dict[str, Any] = own_yaml("leaderboard", "pages/task_example.yaml")
    for part in ("reference", "target", "near_miss"):
        found[part]["path"] = picture_path(registry.spec(found["benchmark"]), found[part]["image"])
    return found
