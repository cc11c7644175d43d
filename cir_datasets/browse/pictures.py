"""The pictures of a page: small copies in it, links to the files, or ids alone."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from cir_datasets.common.paths import open_picture
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import SourceError
from cir_datasets.images import COCO_PICTURES
from cir_datasets.images.locate import (
    gallery_paths,
    image_card,
    image_folders,
    locate,
    needs_relative_path,
)
from cir_datasets.images.picture import small_jpeg
from cir_metrics.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.registry import BenchmarkSpec

WAYS = ("embed", "link", "publisher", "none")
PREFIX = "data:image/jpeg;base64,"
_SIDE = 128

_COCO_ID = re.compile("[0-9]{12}")


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


def page_pictures(
    spec: BenchmarkSpec,
    wanted: Iterable[str],
    beside: Path,
    images: str | Path | None,
    way: str | None,
) -> tuple[dict[str, str], str]:
    """Where the page finds each picture, and a sentence about that.

    Args:
        spec: the benchmark.
        wanted: image ids.
        beside: folder of the page, which links are relative to.
        images: folder of the pictures, or its parent.
        way: one of `WAYS`; None as `browse_queries` says.

    Returns:
        By image id its address, of those that there are.

    Raises:
        UnknownNameError: `way` is not one of `WAYS`.
        SourceError: the folder does not exist, or is not known and pictures are asked for.
    """
    if way is not None and way not in WAYS:
        raise UnknownNameError(
            f"--pictures {way!r} is not a way to show pictures.{did_you_mean(way, WAYS)} "
            f"Fix: choose one of {', '.join(WAYS)}."
        )
    drawn = spec.card.source.publisher == "embedded" and images is None
    if way == "none":
        return {}, "Images are shown by their ids."
    if drawn and way == "link":
        raise SourceError(
            f"{spec.id}: its pictures are drawn, so there are no files to link to. Fix: --pictures embed."
        )
    ids = list(wanted)
    if way == "publisher":
        src = {image: address for image in ids if (address := publishers_address(spec, image))}
        if not src:
            raise SourceError(f"{spec.id}: its publisher shows no pictures. Fix: --pictures link or none.")
        return src, "Your browser takes the pictures from COCO's server."
    if drawn:
        from cir_datasets.shapes import picture

        return {image: _small(picture(image)) for image in ids}, "Pictures are drawn by the package."
    try:
        image_folders(spec, images)
    except SourceError:
        if images is not None or way is not None:
            raise
        return {}, "Images are shown by their ids. Name their folder (--images) to see pictures."
    known = dict(gallery_paths(spec)) if needs_relative_path(spec) else {}
    found = locate(spec, ((image, known.get(image)) for image in ids), images).paths
    if way == "embed":
        return _embedded(spec, found, len(ids))
    src = {image: quote(Path(os.path.relpath(path, beside)).as_posix()) for image, path in found.items()}
    return src, f"Pictures are links to your files: {len(src):,} of {len(ids):,} are there."


def _embedded(spec: BenchmarkSpec, found: Mapping[str, str], total: int) -> tuple[dict[str, str], str]:
    src: dict[str, str] = {}
    with step_progress("small pictures", len(found)) as advance:
        for image, path in found.items():
            try:
                with open_picture(path, image_card(spec).image_formats) as opened:
                    src[image] = _small(opened)
            except (OSError, SyntaxError, ValueError):
                pass  # shown by its id, and counted below
            advance(1)
    return src, (
        f"Small copies of {len(src):,} of {total:,} pictures are in this file: it is for yourself, as the "
        f"pictures' licence may forbid passing them on ({spec.card.license.images})."
    )


def _small(picture: Image) -> str:
    return PREFIX + base64.b64encode(small_jpeg(picture, _SIDE)).decode()
