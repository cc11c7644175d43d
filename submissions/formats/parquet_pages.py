"""What a Parquet file would unfold to, added up from its page headers before anything is decoded.

A page of a few bytes may say that it holds two thousand million values, or that it decompresses to two
gigabytes, and the file's footer may say otherwise: a decoder believes the page. The headers are Thrift's
compact protocol (Parquet's `parquet.thrift`, `PageHeader`); whatever is unusual about them is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_I32, _BINARY, _STRUCT = 5, 8, 12
_TRUE, _FALSE, _I8, _DOUBLE = 1, 2, 3, 7
_VARINTS = frozenset({4, _I32, 6})
_LISTS = frozenset({9, 10})
_MAX_DEPTH = 6
_MAX_VARINT = 70
"""Bits."""

_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_BODY = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""Field of a page header that describes a page of each type."""
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}

_BOUNDED = frozenset({0, 2, 3, 6, 8})
"""PLAIN, PLAIN_DICTIONARY, RLE, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY: text costs the bytes that it has.

(In DELTA_BYTE_ARRAY a few bytes repeat a text of a megabyte.)"""


class PageError(ValueError):
    """A page header is damaged, or of a kind that is not read."""


@dataclass(frozen=True)
class Weight:
    """What pages unfold to.

    Args:
        values: entries of the columns, nulls and empty lists included.
        size: bytes of the pages once decompressed.
    """

    values: int
    size: int


def weigh(content: bytes, metadata: Any) -> Weight:
    """Add up the pages of all columns as a decoder would walk over them.

    Args:
        content: the file's bytes.
        metadata: its footer, a `pyarrow.parquet.FileMetaData`.

    Raises:
        PageError: a header is damaged, or a page is of an encoding whose size cannot be bounded.
    """
    values = size = 0
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            place, seen = _start(column), 0
            while seen < column.num_values:
                header, place = _Compact(content, place).struct()
                kind = _number(header, 1)
                unpacked, packed = _number(header, 2), _number(header, 3)
                held = 0 if kind == _INDEX else _held(header, kind)
                place += packed
                size += unpacked
                values += held
                seen += 0 if kind == _DICTIONARY else held
                if place > len(content):
                    raise PageError("a page ends behind the file")
    return Weight(values, size)


def _start(column: Any) -> int:
    first, place = column.dictionary_page_offset, column.data_page_offset
    return int(first if first is not None and 0 < first < place else place)


def _held(header: dict[int, Any], kind: int) -> int:
    if kind not in _BODY:
        raise PageError(f"a page is of the unknown type {kind}")
    body = header.get(_BODY[kind])
    if not isinstance(body, dict):
        raise PageError("a page header does not describe its page")
    encoding = _number(body, _ENCODING[kind])
    if encoding not in _BOUNDED:
        raise PageError(f"a page has the encoding number {encoding}, which is not read")
    return _number(body, 1)


def _number(fields: dict[int, Any], field: int) -> int:
    value = fields.get(field)
    if type(value) is not int or value < 0:
        raise PageError("a page header lacks a number")
    return value


class _Compact:
    """Reads one Thrift struct of the compact protocol, and keeps its 32-bit numbers and structs.

    Args:
        data: the file's bytes.
        place: where the struct starts.
    """

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place

    def struct(self) -> tuple[dict[int, Any], int]:
        """The struct's fields by number, and the place behind it."""
        return self._struct(0), self._place

    def _struct(self, depth: int) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise PageError("a page header is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while first := self._byte():
            kind, delta = first & 15, first >> 4
            number = number + delta if delta else self._signed()
            if number in fields:
                raise PageError("a page header names a field twice")
            fields[number] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return None
        if kind in _VARINTS:
            value = self._signed()
            return value if kind == _I32 else None
        if kind == _STRUCT:
            return self._struct(depth + 1)
        if kind == _I8:
            self._skip(1)
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _BINARY:
            self._skip(self._unsigned())
        elif kind in _LISTS:
            self._list(depth)
        else:
            raise PageError("a page header is damaged")
        return None

    def _list(self, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            raise PageError("a page header is nested too deeply")
        first = self._byte()
        kind, count = first & 15, first >> 4
        for _ in range(self._unsigned() if count == 15 else count):
            if kind in (_TRUE, _FALSE):
                self._skip(1)
            else:
                self._value(kind, depth + 1)

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self._place - 1]

    def _skip(self, count: int) -> None:
        self._place += count
        if not 0 < self._place <= len(self._data):
            raise PageError("a page header ends behind the file")

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift >= _MAX_VARINT:
                raise PageError("a page header is damaged")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
