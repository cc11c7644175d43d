"""Files of users: where this suite keeps its own and looks for the publishers', names that may become part of
a path, and opening what others have written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

import platformdirs

from cir_datasets.errors import SourceError

if TYPE_CHECKING:
    from PIL.Image import Image

NAME = r"[a-z][a-z0-9_]{0,63}"
NAME_RULE = "small letters, digits and _, a letter first, at most 64"
"""The pattern in words."""
_PATTERN = re.compile(NAME)

PictureFormat = Literal["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"]
"""The formats that a card may name. Others are never tried: of EPS, say, Pillow would start Ghostscript."""

PICTURE_FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
"""All of them, for pictures that belong to no benchmark."""

BENCHMARK_FORMATS: tuple[PictureFormat, ...] = ("JPEG", "PNG")
"""Those of a benchmark whose card names none."""

MOST_PIXELS = 2**26
"""Of a picture that is decoded: a few bytes may claim many more, and each costs up to sixteen."""

DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    TypeError,
    struct.error,
    zlib.error,
)
"""What Pillow's decoders raise on damaged files, each in its own manner."""


def is_name(text: str) -> bool:
    """Whether a benchmark, a challenge or an overlay may be called so.

    Example:
        >>> is_name("my_own"), is_name("my-own"), is_name("../mine")
        (True, False, False)
    """
    return _PATTERN.fullmatch(text) is not None


def regular(path: str | Path) -> Path:
    """The path of a user's file, before it is opened: a pipe would be waited for without end.

    Args:
        path: of a file.

    Raises:
        OSError: there is none, or it is a folder, a pipe, a socket or a device.

    Example:
        >>> regular("/dev/null")
        Traceback (most recent call last):
        OSError: [Errno 22] it is no regular file, but a folder, pipe, socket or device: '/dev/null'
    """
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file, but a folder, pipe, socket or device", str(path))
    return Path(path)


def sha256_of(path: Path) -> str:
    """sha256 (hex) of a file's content.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}. Fix: check its permissions.") from error


def open_picture(file: str | Path | BinaryIO, formats: Collection[PictureFormat] = PICTURE_FORMATS) -> Image:
    """Open a picture in one of some formats, whatever its name ends with; nothing is decoded yet.

    Args:
        file: a path, or an open file that can be read from its start again.
        formats: the formats that are tried.

    Raises:
        PIL.UnidentifiedImageError: it is a picture in none of them; the message says in which of the others,
            where it is one of a card's.
        OSError: it cannot be read, is no regular file, or has more than `MOST_PIXELS`.

    Example:
        >>> import io
        >>> from PIL import Image
        >>> made = io.BytesIO()
        >>> Image.new("RGB", (1, 1)).save(made, "BMP")
        >>> open_picture(made).format
        'BMP'
        >>> open_picture(made, ["JPEG", "PNG"])
        Traceback (most recent call last):
        PIL.UnidentifiedImageError: not a picture in JPEG or PNG, but in BMP
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(file, str | Path):
        regular(file)
    try:
        image = Image.open(file, formats=sorted(formats))
    except UnidentifiedImageError as error:
        try:
            with Image.open(file, formats=PICTURE_FORMATS) as other:
                found = f", but in {other.format}"
        except UnidentifiedImageError:
            found = ""
        raise UnidentifiedImageError(f"not a picture in {' or '.join(sorted(formats))}{found}") from error
    except Image.DecompressionBombError as error:
        raise OSError(str(error)) from error
    if image.width * image.height > MOST_PIXELS:
        image.close()
        raise OSError(f"{image.width:,} x {image.height:,} pixels; at most {MOST_PIXELS:,} are decoded")
    return image


def cache_home() -> Path:
    """Folder of downloads and prepared benchmarks: `CIR_CACHE_HOME`, else the user's cache folder."""
    configured = os.environ.get("CIR_CACHE_HOME")
    return (
        Path(configured).expanduser().absolute()
        if configured
        else Path(platformdirs.user_cache_dir("cir-benchmarks"))
    )


DATA_VARIABLE = "CIR_DATA_HOME"
FOLDERS_VARIABLE = "CIR_BENCHMARKS"
FOLDERS_GROUP = "cir_benchmarks.benchmarks"
"""Entry points: a folder's path, a function that gives one, or a package whose folder it is."""


def data_home() -> Path | None:
    """Folder that holds the publishers' folders (`CIR_DATA_HOME`), or None where it is not set."""
    configured = os.environ.get(DATA_VARIABLE)
    return Path(configured).expanduser().absolute() if configured else None


def challenge_home() -> Path:
    """Folder of the challenges that are known here: `CIR_CHALLENGES`, else one in the user's data folder."""
    configured = os.environ.get("CIR_CHALLENGES")
    return (
        Path(configured).expanduser().absolute()
        if configured
        else Path(platformdirs.user_data_dir("cir-benchmarks")) / "challenges"
    )


def overlay_home() -> Path:
    """Folder of registered overlays: `CIR_OVERLAYS`, else `overlays` in the cache."""
    configured = os.environ.get("CIR_OVERLAYS")
    return Path(configured).expanduser().absolute() if configured else cache_home() / "overlays"
