"""What a picture file is: its size and hash, and those of the pixels that it decodes to."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.paths import DECODING_ERRORS, PICTURE_FORMATS, PictureFormat, open_picture, regular

if TYPE_CHECKING:
    from PIL.Image import Image

_ENDS = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82"}
"""What the file of a whole picture ends with, where its format says so."""


@dataclass(frozen=True)
class PictureFacts:
    """What was read in one picture file.

    Args:
        num_bytes: size of the file.
        mtime_ns: when it was last written, in nanoseconds.
        sha256: hex digest of the file.
        width: in pixels; None where the file cannot be decoded, and so for the next two.
        height: in pixels.
        pixel_sha256: hex digest of the decoded RGB bytes, row by row.
        problem: why it cannot be decoded, or None.
    """

    num_bytes: int
    mtime_ns: int
    sha256: str
    width: int | None
    height: int | None
    pixel_sha256: str | None
    problem: str | None = None


def read_picture(path: str | Path, formats: Collection[PictureFormat] = PICTURE_FORMATS) -> PictureFacts:
    """Read a picture file once, hash it, decode it and hash its pixels.

    Pixels are taken as Pillow decodes them, converted to RGB, before any rotation that the file asks for.

    Args:
        path: the file.
        formats: the formats that it may have; in another one it cannot be decoded.

    Raises:
        OSError: the file cannot be read.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "black.png")
        ...     Image.new("RGB", (1, 1)).save(path)
        ...     facts = read_picture(path)
        >>> facts.width, facts.height, facts.pixel_sha256[:8]
        (1, 1, '709e80c8')
    """
    with regular(path).open("rb") as file:
        content = file.read()
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
    num_bytes, sha256 = len(content), hashlib.sha256(content).hexdigest()
    if not content:
        return PictureFacts(0, mtime_ns, sha256, None, None, None, "the file is empty")
    try:
        with open_picture(io.BytesIO(content), formats) as image:
            width, height = image.size
            pixels = hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
    except DECODING_ERRORS as error:
        problem = str(error) or type(error).__name__
    else:
        return PictureFacts(num_bytes, mtime_ns, sha256, width, height, pixels)
    return PictureFacts(num_bytes, mtime_ns, sha256, None, None, None, problem)


def problem_of(path: str | Path, formats: Collection[PictureFormat] = PICTURE_FORMATS) -> str | None:
    """Why a picture cannot be used, by all of its bytes, or None."""
    try:
        return read_picture(path, formats).problem
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def small_jpeg(picture: Image, side: int, quality: int = 82) -> bytes:
    """A picture as JPEG, its longer side at most `side` pixels."""
    small = picture.convert("RGB")
    small.thumbnail((side, side))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def damage(path: str | Path, formats: Collection[PictureFormat] = PICTURE_FORMATS) -> str | None:
    """Why a file is not a picture that can be decoded, or None; nearly always without decoding it.

    Size, header and the mark at the end of the file are looked at; only a file without that mark is decoded.
    So a file that is empty, something else, or cut off is found, and damage between header and end is not.

    Args:
        path: the file.
        formats: the formats that it may have.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "black.png")
        ...     Image.new("RGB", (9, 9)).save(path)
        ...     whole = damage(path)
        ...     _ = path.write_bytes(b"")
        ...     whole, damage(path)
        (None, 'the file is empty')
    """
    try:
        with regular(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return "the file is empty"
            mark = _ENDS.get(open_picture(file, formats).format or "")
            if mark is not None:
                file.seek(-len(mark), os.SEEK_END)
                if file.read() == mark:
                    return None
        return read_picture(path, formats).problem
    except DECODING_ERRORS as error:
        reason = getattr(error, "strerror", None)
        return f"cannot be read: {reason}" if reason else str(error) or type(error).__name__
