"""The pictures of the benchmark: by id, as one array, as a manifest, and as files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cir_datasets.common.atomic import whole_file
from cir_datasets.common.progress import step_progress
from cir_datasets.errors import DatasetError
from cir_datasets.rows.records import Row, image_row
from cir_datasets.shapes.clips import scene_of_frame
from cir_datasets.shapes.render import SIDE, Pixels, pixel_sha256, pixels
from cir_datasets.shapes.splits import SPLITS, Split, split
from cir_datasets.shapes.world import Scene
from cir_metrics.errors import CallError, UnknownNameError

if TYPE_CHECKING:
    from PIL.Image import Image

LICENSE = "CC0-1.0"
"""Of the pictures: nobody's permission is needed."""

_PREFIX = "multiturn_"
_IMAGE_ID = re.compile(r"([a-z]+)-(\d{6})")


def split_of(config: str) -> Split:
    """The split that a configuration belongs to; `val` and `multiturn_val` share one gallery.

    Raises:
        UnknownNameError: shapes has no such configuration.

    Example:
        >>> split_of("multiturn_val").name
        'val'
    """
    name = config.removeprefix(_PREFIX)
    if name not in SPLITS:
        known = ", ".join(f"{prefix}{known}" for known in SPLITS for prefix in ("", _PREFIX))
        raise UnknownNameError(f"shapes has no configuration {config!r}. Fix: use one of {known}.")
    return split(name)


def scene(image_id: str) -> Scene:
    """The scene graph behind a picture.

    Raises:
        UnknownNameError: no gallery of shapes holds that image, and no clip.

    Example:
        >>> scene("val-000123").background
        'starry'
    """
    of_clip = scene_of_frame(image_id)
    if of_clip is not None:
        return of_clip
    found = _IMAGE_ID.fullmatch(image_id)
    if found is not None and found[1] in SPLITS:
        scenes = split(found[1]).scenes
        if int(found[2]) < len(scenes):
            return scenes[int(found[2])]
    raise UnknownNameError(
        f"shapes has no image {image_id!r}. Fix: use an id of its galleries, such as 'val-000123', or of a "
        "clip, such as 'clip-000012/000003.jpg'."
    )


def picture(image_id: str) -> Image:
    """A picture as a Pillow image, 96 x 96 RGB.

    Raises:
        UnknownNameError: no gallery of shapes holds that image.

    Example:
        >>> picture("val-000123").size
        (96, 96)
    """
    from PIL import Image

    return Image.fromarray(pixels(scene(image_id)))


def relative_path(image_id: str) -> str:
    """Where a picture lies below the image folder of shapes.

    Example:
        >>> relative_path("val-000123")
        'val/000123.png'
    """
    name, _, number = image_id.partition("-")
    return f"{name}/{number}.png"


def load_pixels(config: str, *, shrink: int = 1) -> tuple[list[str], Pixels]:
    """All pictures of a configuration's gallery as one array.

    Args:
        config: `val`, `train`, `multiturn_val` or `multiturn_train`.
        shrink: 1 for whole pictures (620 MB for `train`); n averages squares of n by n pixels.

    Returns:
        Image ids in the manifest's order, and RGB values of shape (images, 96 / shrink, 96 / shrink, 3).

    Raises:
        UnknownNameError: shapes has no such configuration.
        CallError: `shrink` does not divide 96.

    Example:
        >>> ids, thumbnails = load_pixels("val", shrink=8)
        >>> thumbnails.shape == (len(ids), 12, 12, 3)
        True
    """
    if shrink < 1 or SIDE % shrink:
        raise CallError(f"shrink={shrink}; it must divide {SIDE}. Fix: use 1, 2, 3, 4, 6, 8, ...")
    found = split_of(config)
    side = SIDE // shrink
    out = np.empty((len(found.scenes), side, side, 3), dtype=np.uint8)
    with step_progress(f"shapes/{config}: drawing pictures", len(found.scenes)) as advance:
        for i, one in enumerate(found.scenes):
            whole = pixels(one)
            if shrink == 1:
                out[i] = whole
            else:
                sums = whole.reshape(side, shrink, side, shrink, 3).sum(axis=(1, 3), dtype=np.int64)
                out[i] = (sums + shrink * shrink // 2) // (shrink * shrink)
            advance(1)
    return found.image_ids, out


def manifest(config: str) -> Iterator[Row]:
    """Rows of a configuration's gallery manifest, with hashes of the decoded pixels.

    PNG bytes differ between builds of zlib, so that size and sha256 of the files are null.

    Raises:
        UnknownNameError: shapes has no such configuration.
    """
    found = split_of(config)
    with step_progress(f"shapes/{config}: drawing pictures", len(found.scenes)) as advance:
        for image_id, one in zip(found.image_ids, found.scenes, strict=True):
            yield image_row(
                image_id,
                relative_path=relative_path(image_id),
                pixel_sha256=pixel_sha256(pixels(one)),
                width=SIDE,
                height=SIDE,
                license=LICENSE,
            )
            advance(1)


def write_pictures(config: str, folder: str | Path) -> int:
    """Write a configuration's gallery as PNG files, laid out as the manifest says.

    A file that already holds the right pixels is left alone, so that an interrupted run can be repeated; each
    file appears whole or not at all.

    Args:
        config: `val`, `train`, `multiturn_val` or `multiturn_train`.
        folder: the image folder of shapes (`CIR_IMAGES/shapes`); made where it is missing.

    Returns:
        The number of files written now.

    Raises:
        UnknownNameError: shapes has no such configuration.
        DatasetError: a file cannot be written.
    """
    found = split_of(config)
    root = Path(folder).expanduser().absolute()
    written = 0
    try:
        (root / found.name).mkdir(parents=True, exist_ok=True)
        with step_progress(f"shapes/{config}: writing pictures", len(found.scenes)) as advance:
            for image_id, one in zip(found.image_ids, found.scenes, strict=True):
                written += _write(pixels(one), root / relative_path(image_id))
                advance(1)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or root}: cannot be written: {error.strerror}. Fix: use another folder."
        ) from error
    return written


def _write(whole: Pixels, path: Path) -> bool:
    """Write one picture unless it is there; whether it was written."""
    from PIL import Image

    if _holds(path, whole):
        return False
    with whole_file(path) as file:
        Image.fromarray(whole).save(file, format="PNG")
    return True


def _holds(path: Path, whole: Pixels) -> bool:
    from PIL import UnidentifiedImageError

    from cir_datasets.common.paths import open_picture

    try:
        with open_picture(path, ["PNG"]) as image:
            return image.size == (SIDE, SIDE) and np.array_equal(np.asarray(image.convert("RGB")), whole)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        return False  # missing or damaged: to be written
