"""The items of a JSON list one at a time, so that a file of a million records needs no more memory than one.

The standard library's parser reads each item from a window that slides over the file; lines and columns are
counted along, because whoever has to mend a file needs them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

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
