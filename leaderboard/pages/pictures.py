"""The pictures that pages show: what the package draws, and what a host has or COCO shows."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cir_datasets import registry
from cir_datasets.common.paths import open_picture
from cir_datasets.common.yaml import package_yaml
from cir_datasets.errors import DatasetError
from cir_datasets.images.locate import gallery_paths, image_card, locate
from cir_datasets.images.picture import small_jpeg
from cir_datasets.registry import BenchmarkSpec
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.pages.queries import why_hidden
from leaderboard.pages.site import Site

_FOLDER = "site/pictures"
_PATH = re.compile(
    _FOLDER + r"/shapes/(?P<version>[0-9]{1,6})/(?P<image>(?P<split>[a-z]{1,20})-[0-9]{6})\.png"
)
_SPLIT = re.compile(r"[a-z]{1,20}(?=-[0-9]{6}\Z)")
_SIDE = 192
"""Pixels of a small picture's longer side."""
_KEPT = 2000
"""Pictures of about 2 KB each that a process keeps."""

MEDIA_TYPE, HOSTED_TYPE = "image/png", "image/jpeg"


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


def hosted_path(root: Path | None, spec: BenchmarkSpec, image_id: str) -> str:
    """Path of a picture of the host's folders on this site, or empty where they do not have it.

    Args:
        root: the parent of these folders; None where the host names none.
        spec: the benchmark.
        image_id: of its gallery.
    """
    there = root is not None and "/" not in image_id and image_id in _hosted(root, spec.id)
    return f"{_FOLDER}/of/{quote(spec.id)}/{quote(image_id)}.jpg" if there else ""


def hosted_picture(site: Site, benchmark: str, image_id: str) -> bytes:
    """A picture of the host's folders as a small JPEG.

    Args:
        site: of the server.
        benchmark: its id.
        image_id: of its gallery.

    Raises:
        UnknownNameError: it is not there, or no board shows the queries of that benchmark.
    """
    shown = (board for board in boards.boards() if benchmark in board.benchmarks)
    root = site.server.settings.pictures
    file = None
    if root is not None and any(not why_hidden(site, board) for board in shown):
        file = _hosted(root, benchmark).get(image_id)
    if file is None:
        raise UnknownNameError(f"no picture {image_id[:80]!r}. Fix: take its address from a page of a query.")
    return _small(file)


@functools.lru_cache(16)
def _hosted(root: Path, benchmark: str) -> Mapping[str, str]:
    """The files of a gallery's pictures by id; none where the host has no folder of it."""
    try:
        return locate(registry.spec(benchmark), gallery_paths(registry.spec(benchmark)), root).paths
    except DatasetError:
        return {}


@functools.lru_cache(_KEPT)
def _small(file: str) -> bytes:
    try:
        with open_picture(file) as opened:
            drawn = opened.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise UnknownNameError(f"{Path(file).name} is no picture. Fix: look at the host's folder.") from error
    return small_jpeg(drawn, _SIDE)


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
    found = dict(package_yaml("leaderboard", "pages/task_example.yaml"))
    for part in ("reference", "target", "near_miss"):
        path = picture_path(registry.spec(found["benchmark"]), found[part]["image"])
        found[part] = {**found[part], "path": path}
    return found
