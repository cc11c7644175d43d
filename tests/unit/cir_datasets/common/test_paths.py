"""Files of users: what is no file is not opened, and what a picture claims is not believed."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cir_here import cir
from says import says

from cir_datasets.common.paths import MOST_PIXELS, open_picture, regular
from cir_datasets.common.row_files import read_row_file
from cir_datasets.common.yaml import read_fields
from cir_datasets.construction.filled_tables import read_text
from cir_datasets.errors import CardError, DatasetError
from cir_datasets.images.picture import damage, read_picture
from cir_datasets.registry.published import published_file
from cir_metrics.errors import CirError
from submissions.embeddings.pictures import FilePictures

SIDE = 13_000
"""Of a square of 169 megapixels, below the 179 that Pillow refuses by itself."""


def png(width: int, height: int) -> bytes:
    """A PNG of one colour: its rows of zeros are packed a thousandfold."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(width // 8 + 2)) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff(width: int, height: int) -> bytes:
    """A TIFF of one strip that holds nothing."""
    tags = [
        (256, width),
        (257, height),
        (258, 1),
        (259, 1),
        (262, 1),
        (273, 8),
        (277, 1),
        (278, height),
        (279, 1),
    ]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + bytes(4)


BOMBS = {
    "a.png": png(SIDE, SIDE),
    "a.tiff": tiff(SIDE, SIDE),
    "b.png": png(60_000, 10),
    "c.tiff": tiff(2**16, 2**16),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_picture_of_too_many_pixels_is_not_decoded(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name])
    if name == "b.png":  # long and narrow, and small enough
        assert read_picture(path).width == 60_000
        return
    with pytest.raises(OSError, match="pixels"):
        open_picture(path)
    assert "pixels" in str(read_picture(path).problem)
    assert "pixels" in str(damage(path))
    pictures = FilePictures("mine", ("a",), (str(path),), str(tmp_path))
    assert pictures.missing() == ["a"]
    with pytest.raises(DatasetError) as caught:
        pictures.open(0)
    says(caught, "'a'", str(path), "pixels")


def test_the_bound_lies_above_what_cameras_make_and_below_what_fills_a_memory() -> None:
    assert 48_000_000 < MOST_PIXELS < 100_000_000


READERS: dict[str, Callable[[Path], Any]] = {
    "yaml": lambda path: read_fields(path, CardError, "name: x"),
    "rows.jsonl": lambda path: list(read_row_file(path)),
    "rows.csv": lambda path: list(read_row_file(path)),
    "rows.parquet": lambda path: list(read_row_file(path)),
    "table": lambda path: read_text(path, CardError),
    "published": published_file,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(CirError) as caught:
        READERS[name](path)
    says(caught, str(path), "no regular file", "Fix: ")


def test_a_pipe_is_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    os.mkfifo(path)
    assert "no regular file" in str(damage(path))
    pictures = FilePictures("mine", ("a",), (str(path),), str(tmp_path))
    assert pictures.missing() == ["a"]
    for opened in (open_picture, read_picture, regular):
        with pytest.raises(OSError, match="no regular file"):
            opened(path)


COMMANDS = [
    ["validate", "{pipe}", "--benchmark", "shapes/val"],
    ["score", "{pipe}"],
    ["compare", "{pipe}", "{pipe}"],
    ["convert", "{pipe}", "--to", "trec", "--out", "out.trec"],
    ["browse", "{pipe}", "--out", "page.html"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_command_waits_for_a_pipe(words: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    done = cir(*(word.format(pipe=tmp_path / "run.json") for word in words), folder=tmp_path)
    assert done.returncode in (1, 2), done.stderr
    says(done.stdout + done.stderr, "no regular file")
