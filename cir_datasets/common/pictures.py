"""Opening a picture with the formats that a card may name, and no others."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from cir_datasets.common.paths import regular

if TYPE_CHECKING:
    from PIL.Image import Image

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
