"""What a Parquet file would unfold to, added up from its page headers before anything is decoded.

A page of a few bytes may say that it holds two thousand million values, or that it decompresses to two
gigabytes, and the footer may say otherwise: a decoder believes the page. Footer and headers are read here
from the bytes (`parquet.thrift`: `FileMetaData`, `PageHeader`), not by pyarrow, whose view of a damaged
footer may end the process.

A leaderboard judges in a process with limits, which such a file may end. `cir validate`, `cir score` and
overlays read in the caller's own process, where nothing else limits a decoder: for them these sums make a
stranger's file safe, and its refusal a finding.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from dataclasses import dataclass

from cir_datasets.common.thrift import I32, I64, Compact, Fields, ThriftError, inner, number, structs

MARK = b"PAR1"
"""What a Parquet file starts and ends with."""
MAX_FOOTER = 2**19
"""Bytes: a footer unfolds to about two hundred times its size."""

MAX_VALUES = 1_000
"""Fields and elements of lists in one page header; those of known writers have about twenty."""

_TAIL = 8
"""Bytes behind the footer: its length and the mark."""
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_BODY = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""Field of a page header that describes a page of each type."""
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_BYTE_ARRAY = 6
"""The physical type of texts."""
_PLAIN = 0
_DELTA_LENGTH = 6
_BOUNDED = frozenset({_PLAIN, 2, 3, 5, _DELTA_LENGTH, 8})
"""PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED (whole numbers), DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY:
text costs the bytes that it has.

(In DELTA_BYTE_ARRAY a few bytes repeat a text of a megabyte.)"""
_UNREAD = {7: "DELTA_BYTE_ARRAY", 9: "BYTE_STREAM_SPLIT"}
_LENGTH = struct.Struct("<I")
"""What stands before each text."""
_CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


class EncodingError(Exception):
    """A page is of an encoding whose size cannot be bounded; its text is the encoding's name."""


@dataclass
class Chunk:
    """What one column of one row group unfolds to.

    Args:
        values: entries, nulls, empty lists and the dictionary's own included.
        size: bytes of its pages once decompressed.
        as_text: whether it has to be read as text and not as places in a dictionary, because only some of its
            pages use one (writers drop a dictionary that grows too large), or because of its encoding.
        dictionary: place and lengths (packed, unpacked) of the dictionary page, and how many texts it has, or
            None.
        codec: Parquet's number of the compression.
        kind: Parquet's number of the physical type.
    """

    values: int = 0
    size: int = 0
    as_text: bool = False
    dictionary: tuple[int, int, int, int] | None = None
    codec: int = 0
    kind: int = _BYTE_ARRAY

    def text(self, content: bytes) -> int:
        """Bytes that the column's texts have at most where each place gets a copy.

        Args:
            content: the file's bytes.

        Raises:
            ThriftError: the dictionary page is damaged.
        """
        return self.size + self.values * _longest(content, self)


def row_groups(
    content: bytes, most: int | None = None, columns: Container[int] | None = None
) -> list[list[Chunk]]:
    """The columns of every row group, weighed by walking over their pages as a decoder does.

    Args:
        content: the file's bytes.
        most: bytes of page headers that are walked over; default: as many as the file has.
        columns: places of the columns that are read; default: all.

    Raises:
        ThriftError: footer or header is damaged, or pages are shared by columns.
        LongHeaderError: there are more bytes of headers than that, or more than `MAX_VALUES` in one.
        EncodingError: a page is of an encoding whose size cannot be bounded.
    """
    length = int.from_bytes(content[-_TAIL:-4], "little")
    start = len(content) - _TAIL - length
    if start < 0:
        raise ThriftError("the footer starts before the file")
    footer = Compact(content[start:-_TAIL], 0).struct()
    walked = _Walked(len(content), len(content) if most is None else most)
    return [
        [
            _weigh(content, inner(column, 3), walked)
            for place, column in enumerate(structs(group, 1))
            if columns is None or place in columns
        ]
        for group in structs(footer, 4)
    ]


@dataclass
class _Walked:
    """Bytes of headers that may still be walked over.

    The columns of a sound file lie one behind the other; a hostile one has ten thousand of them, all of which
    point to the same run of pages: their headers have more bytes than the file.
    """

    size: int
    left: int

    def header(self, content: bytes, place: int) -> tuple[Fields, int]:
        """The page header at a place, and the place behind it."""
        if not self.size:
            raise ThriftError("its page headers are shared, or have no end")
        reader = Compact(content, place, most=self.left, values=MAX_VALUES)
        found = reader.struct()
        walked = reader.place - place
        self.size, self.left = max(0, self.size - walked), self.left - walked
        return found, reader.place


def _weigh(content: bytes, column: Fields, walked: _Walked) -> Chunk:
    chunk = Chunk(codec=number(column, 4, I32), kind=number(column, 1, I32))
    wanted, place = number(column, 5, I64), number(column, 9, I64)
    first = number(column, 11, I64) if 11 in column else 0
    place = first if 0 < first < place else place
    seen = 0
    encodings = set()
    while seen < wanted:
        header, start = walked.header(content, place)
        kind, unpacked, packed = (number(header, field, I32) for field in (1, 2, 3))
        place = start + packed
        if place > len(content):
            raise ThriftError("a page ends behind the file")
        chunk.size += unpacked
        if kind == _INDEX:
            continue
        if kind not in _BODY:
            raise ThriftError(f"a page is of the unknown type {kind}")
        body = inner(header, _BODY[kind])
        encoding, held = number(body, _ENCODING[kind], I32), number(body, 1, I32)
        if encoding not in _BOUNDED:
            raise EncodingError(_UNREAD.get(encoding, f"the encoding number {encoding}"))
        chunk.values += held
        if kind == _DICTIONARY:
            chunk.dictionary = (start, packed, unpacked, held)
        else:
            seen += held
            encodings.add(encoding)
    partly = _PLAIN in encodings and chunk.dictionary is not None
    chunk.as_text = partly or _DELTA_LENGTH in encodings
    return chunk


def _longest(content: bytes, chunk: Chunk) -> int:
    """Bytes of the longest text in a column's dictionary."""
    import pyarrow as pa

    if chunk.dictionary is None:
        return 0
    place, packed, unpacked, texts = chunk.dictionary
    if chunk.kind != _BYTE_ARRAY:
        return unpacked // max(1, texts)
    page = content[place : place + packed]
    if chunk.codec not in _CODECS:
        raise ThriftError(f"the compression number {chunk.codec} is not read")
    codec = _CODECS[chunk.codec]
    if codec is not None:
        page = pa.decompress(page, decompressed_size=unpacked, codec=codec, asbytes=True)
    longest = at = 0
    last = len(page) - _LENGTH.size
    # A page of zeros has an empty text every four bytes; a decoder takes as many as the header says.
    for _ in range(texts):
        if at > last:
            break
        (length,) = _LENGTH.unpack_from(page, at)
        if length > longest:
            longest = length
        at += 4 + length
    return longest
