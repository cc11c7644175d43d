"""Thrift's compact protocol, as far as Parquet's headers need it: one struct, read strictly.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

I32, I64, LIST, STRUCT = 5, 6, 9, 12
"""Kinds of fields that are kept."""

_TRUE, _FALSE, _I8, _I16, _DOUBLE, _BINARY, _SET = 1, 2, 3, 4, 7, 8, 10
_BOOLEANS = frozenset({_TRUE, _FALSE})
_NUMBERS = frozenset({_I16, I32, I64})
_MAX_DEPTH = 10
_MAX_VARINT = 70
"""Bits."""

Fields = dict[int, tuple[int, Any]]
"""By number of the field its kind and value; None where the value was passed over."""


class ThriftError(ValueError):
    """The bytes are not such a struct."""


class LongHeaderError(ThriftError):
    """The struct is longer, or holds more, than is read."""


class Compact:
    """Reads structs from bytes.

    Args:
        data: the bytes.
        place: where the struct starts; afterwards the place behind it.
        most: bytes that are read at most.
        values: fields and elements of lists that are read at most. A value of one byte takes a hundred in
            memory; what is passed over, such as texts, costs nothing.
    """

    def __init__(
        self, data: bytes, place: int, *, most: int | None = None, values: int | None = None
    ) -> None:
        """See the class."""
        self.data, self.place = data, place
        self._end = len(data) if most is None else min(len(data), place + most)
        self._left = len(data) if values is None else values

    def struct(self, depth: int = 0) -> Fields:
        """The fields of a struct; a field that is there twice is refused, since readers differ there.

        Args:
            depth: structs and lists around this one.

        Raises:
            ThriftError: the bytes are not a struct.
            LongHeaderError: it is longer, or holds more, than is read.
        """
        if depth > _MAX_DEPTH:
            raise ThriftError("a header is nested too deeply")
        fields: Fields = {}
        number = 0
        while first := self._byte():
            self._take(1)
            kind, delta = first & 15, first >> 4
            number = number + delta if delta else self._signed()
            if number in fields:
                raise ThriftError("a header names a field twice")
            fields[number] = (kind, None if kind in _BOOLEANS else self._value(kind, depth + 1))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _NUMBERS:
            return self._signed()
        if kind == STRUCT:
            return self.struct(depth)
        if kind in (LIST, _SET):
            return self._list(depth)
        if kind in (_I8, _DOUBLE):
            self._skip(1 if kind == _I8 else 8)
        elif kind == _BINARY:
            self._skip(self._unsigned())
        else:
            raise ThriftError("a header holds an unknown kind of field")
        return None

    def _list(self, depth: int) -> list[Any]:
        first = self._byte()
        kind, count = first & 15, first >> 4
        count = self._unsigned() if count == 15 else count
        self._take(count)
        # Every element has a byte or more, so that a false count ends with the bytes.
        return [self._byte() if kind in _BOOLEANS else self._value(kind, depth) for _ in range(count)]

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.place - 1]

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LongHeaderError("a header holds more values than are read")

    def _skip(self, count: int) -> None:
        self.place += count
        if not 0 < self.place <= len(self.data):
            raise ThriftError("a header ends behind the file")
        if self.place > self._end:
            raise LongHeaderError("there are more bytes of headers than are read")

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift >= _MAX_VARINT:
                raise ThriftError("a header holds a number without end")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def number(fields: Fields, field: int, kind: int) -> int:
    """A field that must be there and hold a whole number of that kind, 0 or more.

    Raises:
        ThriftError: it does not.
    """
    found = fields.get(field, (0, None))
    if found[0] != kind or type(found[1]) is not int or found[1] < 0:
        raise ThriftError("a header lacks a number")
    return found[1]


def structs(fields: Fields, field: int) -> Sequence[Fields]:
    """A field that must be there and hold a list of structs.

    Raises:
        ThriftError: it does not.
    """
    kind, found = fields.get(field, (0, None))
    if kind != LIST or not all(isinstance(each, dict) for each in found):
        raise ThriftError("a header lacks a list")
    listed: Sequence[Fields] = found
    return listed


def inner(fields: Fields, field: int) -> Fields:
    """A field that must be there and hold a struct.

    Raises:
        ThriftError: it does not.
    """
    kind, found = fields.get(field, (0, None))
    if kind != STRUCT:
        raise ThriftError("a header lacks a part")
    held: Fields = found
    return held
