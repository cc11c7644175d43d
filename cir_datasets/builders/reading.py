"""Reading a publisher's JSON, one record at a time: every fault is an error that names file and record.

The standard library's parser reads each item of a list from a window that slides over the file, so that a
million records need no more memory than one. Records, lines and columns count from 1 in messages. Nothing is
repaired and nothing is dropped: dropping a record would change the denominator of every metric.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cir_datasets.common.strict_json import DECODER, TOO_DEEP, StrictJsonError, strict_json
from cir_datasets.errors import FIX, RecordError
from cir_datasets.rows.records import Row, image_row

CHUNK_BYTES = 1 << 20

_BLANKS = " \t\n\r"
_CUT_SHORT = 16
"""A fault this near to the window's end may be an item cut in two (a literal or an escape at most)."""


class NotAListError(ValueError):
    """The file does not begin with `[`."""


class JsonPlaceError(ValueError):
    """The text is not JSON; the message names line and column."""


def stream_items(path: Path, decoder: json.JSONDecoder, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Any]:
    """The items of the JSON list that a file holds, in order.

    Args:
        path: the file, UTF-8.
        decoder: reads one item; what its hooks raise is passed on.
        chunk_bytes: bytes read at a time; memory is about this and one item.

    Raises:
        NotAListError: the file begins with something else than a list.
        JsonPlaceError: it is not JSON.
        UnicodeDecodeError: it is not UTF-8; `start` counts bytes from the beginning of the file.
        RecursionError: an item is nested too deeply.
    """
    with _Window(path, chunk_bytes) as window:
        if window.skip_blanks() != "[":
            raise NotAListError
        window.take()
        if window.skip_blanks() == "]":
            window.take()
        else:
            yield window.item(decoder)
            while (mark := window.skip_blanks()) == ",":
                window.take()
                window.skip_blanks()
                yield window.item(decoder)
            if mark != "]":
                window.fail("Expecting ',' delimiter")
            window.take()
        if window.skip_blanks():
            window.fail("Extra data")


class _Window:
    """The part of a file's text that is being read."""

    def __init__(self, path: Path, chunk_bytes: int) -> None:
        self._handle = path.open("rb")
        self._chunk_bytes = chunk_bytes
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._bytes_read = 0
        self._at_end = False
        self._text = ""
        self._place = 0
        self._lines_before = 0
        self._columns_before = 0

    def __enter__(self) -> _Window:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def skip_blanks(self) -> str:
        """Move to the next character that is not blank and return it; "" at the end of the file."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in _BLANKS:
                    return self._text[self._place]
                self._place += 1
            if not self._read_on():
                return ""

    def take(self) -> None:
        """Step over one character."""
        self._place += 1

    def item(self, decoder: json.JSONDecoder) -> Any:
        """The item that begins here."""
        while True:
            try:
                item, end = decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos + _CUT_SHORT > len(self._text)
                if cut and self._read_on():
                    continue
                self._place = error.pos
                self.fail(error.msg)
            if isinstance(item, int | float) and end + _CUT_SHORT > len(self._text) and self._read_on():
                continue  # the number may go on in the next chunk
            self._place = end
            return item

    def fail(self, what: str) -> NoReturn:
        """Raise an error that names the line and the column of this place."""
        line, column = self._position(self._place)
        raise JsonPlaceError(f"line {line}, column {column}: not JSON: {what}")

    def _position(self, place: int) -> tuple[int, int]:
        lines = self._text.count("\n", 0, place)
        column = place - self._text.rfind("\n", 0, place)
        return 1 + self._lines_before + lines, column + (0 if lines else self._columns_before)

    def _read_on(self) -> bool:
        """Drop what has been read and append the next chunk; False at the end of the file."""
        if self._at_end:
            return False
        chunk = self._handle.read(max(self._chunk_bytes, len(self._text) - self._place))
        pending = len(self._decode.getstate()[0])
        try:
            more = self._decode.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = self._bytes_read - pending
            raise UnicodeDecodeError(
                error.encoding, b"", before + error.start, before + error.end, error.reason
            ) from None
        self._bytes_read += len(chunk)
        self._at_end = not chunk
        line, column = self._position(self._place)
        self._lines_before, self._columns_before = line - 1, column - 1
        self._text = self._text[self._place :] + more
        self._place = 0
        return True


_KINDS = {str: "a string", int: "an integer", float: "a number", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class Record:
    """One record of a publisher's file, with what an error message needs."""

    path: Path
    number: int
    fields: dict[str, Any]
    label: str = ""
    """The record's own id, such as `pairid 12063`."""

    @property
    def where(self) -> str:
        """File and record, as error messages print them."""
        label = f" ({self.label})" if self.label else ""
        return f"{self.path}: record {self.number}{label}"

    def named(self, label: str) -> Record:
        """The same record, known by its own id from here on."""
        return Record(self.path, self.number, self.fields, label)

    def fail(self, what: str) -> NoReturn:
        """Raise a `RecordError` that says `what` is wrong with this record."""
        raise RecordError(f"{self.where}: {what} {FIX}")

    def get(self, name: str) -> Any:
        """A field that must be there."""
        if name not in self.fields:
            self.fail(f"the field {name!r} is missing.")
        return self.fields[name]

    def text(self, name: str) -> str:
        """A string, as published (it may be blank)."""
        return self._text(self.get(name), f"the field {name!r}")

    def id(self, name: str) -> str:
        """A string that is not empty."""
        value = self.text(name)
        if not value:
            self.fail(f"the field {name!r} is an empty string.")
        return value

    def id_or_integer(self, name: str) -> str:
        """An id that some files write as a number."""
        return self.id(name) if isinstance(self.get(name), str) else str(self.integer(name))

    def integer(self, name: str) -> int:
        """An integer (a boolean is not one)."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(f"the field {name!r} must be an integer, not {value!r}.")
        return value

    def object(self, name: str) -> Record:
        """An object, as a record whose messages still name this one."""
        value = self.get(name)
        if not isinstance(value, dict):
            self.fail(f"the field {name!r} must be an object, not {value!r}.")
        return Record(self.path, self.number, value, f"{self.label}, {name}" if self.label else name)

    def items(self, name: str, *, may_be_empty: bool = False) -> list[Any]:
        """A list, by default one that is not empty."""
        value = self.get(name)
        if not isinstance(value, list) or not (value or may_be_empty):
            kind = "a list" if may_be_empty else "a list that is not empty"
            self.fail(f"the field {name!r} must be {kind}, not {value!r}.")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings that is not empty; the strings may be blank."""
        return [self._text(value, f"an item of {name!r}") for value in self.items(name)]

    def ids(self, name: str, *, may_be_empty: bool = False) -> list[str]:
        """A list of different strings, none of them empty."""
        values = [
            self._text(value, f"an item of {name!r}") for value in self.items(name, may_be_empty=may_be_empty)
        ]
        if "" in values:
            self.fail(f"an item of {name!r} is an empty string.")
        if len(set(values)) < len(values):
            twice = next(value for place, value in enumerate(values) if value in values[:place])
            self.fail(f"the field {name!r} holds {twice!r} twice.")
        return values

    def _text(self, value: Any, what: str) -> str:
        if not isinstance(value, str):
            self.fail(f"{what} must be a string, not {value!r}.")
        return value


def read_json(path: Path, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """The JSON of a file whose top level is a list or an object.

    Raises:
        RecordError: the file is not UTF-8 JSON (the message names line and column), holds a key twice in one
            object, or has another top level.
    """
    try:
        content = strict_json(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: byte {error.start} is not UTF-8. {FIX}") from error
    except StrictJsonError as error:
        raise RecordError(f"{path}: {error}. {FIX}") from error
    if not isinstance(content, kind):
        raise RecordError(
            f"{path}: the top level must be {_KINDS[kind]}, not {_KINDS.get(type(content), 'a value')}. {FIX}"
        )
    return content


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file that holds a list of objects, one at a time: the file may be larger than memory.

    Raises:
        RecordError: see `read_json`; the records before the fault have been handed out by then.
    """
    for number, fields in enumerate(_stream(path), start=1):
        if not isinstance(fields, dict):
            raise RecordError(f"{path}: record {number} must be an object, not {fields!r}. {FIX}")
        yield Record(path, number, fields)


def listed_images(path: Path) -> Iterator[Row]:
    """Rows of a manifest for a file that lists images by their paths below the image folder.

    Raises:
        RecordError: see `read_image_ids`.
    """
    for image_id in read_image_ids(path):
        yield image_row(image_id, relative_path=image_id)


def read_image_ids(path: Path) -> Iterator[str]:
    """The ids of a file that holds a list of image ids.

    Raises:
        RecordError: see `read_json`; or an item is not an id.
    """
    for number, image_id in enumerate(_stream(path), start=1):
        if not isinstance(image_id, str) or not image_id:
            raise RecordError(
                f"{path}: record {number}: an image id must be a string, not {image_id!r}. {FIX}"
            )
        yield image_id


def _stream(path: Path) -> Iterator[Any]:
    """The items of a file's JSON list; every other file is read whole, for the error it deserves."""
    read = 0
    try:
        for item in stream_items(path, DECODER):
            read += 1
            yield item
    except NotAListError:
        read_json(path, list)
        raise
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: byte {error.start} is not UTF-8. {FIX}") from error
    except JsonPlaceError as error:
        raise RecordError(f"{path}: {error}. {FIX}") from error
    except StrictJsonError as error:
        raise RecordError(f"{path}: record {read + 1}: {error}. {FIX}") from error
    except RecursionError as error:
        raise RecordError(f"{path}: record {read + 1}: {TOO_DEEP}. {FIX}") from error
