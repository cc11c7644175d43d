"""What a form (`multipart/form-data`) may hold, followed while it passes by: files, texts, bytes of texts.

The parser is the one that Starlette uses. The upload route takes its parts from here: `request.form` would
write a file to the disk, read it again, and have it written a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

SCOPE_KEY = "cir.form"
"""Where a request's scope holds the watch of its form."""

TEXT_BYTES = 64 * 1024
"""Bytes of all texts of a form; they are kept in memory."""


@dataclass(frozen=True)
class FormLimits:
    """What a route's form may hold.

    Args:
        files: parts with a file name.
        texts: parts without one.
    """

    files: int
    texts: int


class FormRefusedError(ValueError):
    """A form is malformed, or holds more than its route takes."""


class FormWatch:
    """Follows one form; `texts` and `file_name` hold what of it is complete.

    Args:
        content_type: the request's header, `multipart/form-data; boundary=...`.
        limits: what its route takes.

    Raises:
        FormRefusedError: there is no usable boundary.

    Example:
        >>> watch = FormWatch("multipart/form-data; boundary=x", FormLimits(files=0, texts=1))
        >>> part = b'--x\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\n1\\r\\n'
        >>> watch.feed(part)
        >>> watch.feed(part)
        Traceback (most recent call last):
        ...
        leaderboard.web.forms.FormRefusedError: the form has more than 1 text
    """

    def __init__(self, content_type: str, limits: FormLimits) -> None:
        """Begin before the first byte."""
        self.texts: dict[str, str] = {}
        self.file_name: str | None = None
        self._take: Callable[[bytes], object] | None = None
        self._limits = limits
        self._files = self._texts = self._text_bytes = 0
        self._part: dict[bytes, bytes] = {}
        self._text = bytearray()
        self._name = self._value = self._disposition = b""
        _, options = parse_options_header(content_type)
        try:
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                },
            )
        except (KeyError, FormParserError) as error:
            raise FormRefusedError("the form's Content-Type has no boundary, or a very long one") from error

    def hand_file_to(self, take: Callable[[bytes], object]) -> None:
        """Call `take` with the bytes of the file in the field `file`, as they come."""
        self._take = take

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes.

        Raises:
            FormRefusedError: they are not a form, or one part too many has begun.
        """
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise FormRefusedError("the form is malformed") from error

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _on_headers_finished(self) -> None:
        _, self._part = parse_options_header(self._disposition)
        self._disposition = b""
        if b"name" not in self._part:
            raise FormRefusedError("a part of the form has no name")
        if b"filename" in self._part:
            self._files += 1
            _check(self._files, self._limits.files, "file")
        else:
            self._texts += 1
            _check(self._texts, self._limits.texts, "text")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if b"filename" in self._part:
            if self._take is not None and self._part[b"name"] == b"file":
                self._take(data[start:end])
            return
        self._text_bytes += end - start
        if self._text_bytes > TEXT_BYTES:
            raise FormRefusedError(f"the form's texts have more than {TEXT_BYTES:,} bytes")
        self._text += data[start:end]

    def _on_part_end(self) -> None:
        if b"filename" not in self._part:
            self.texts[_decoded(self._part[b"name"])] = _decoded(bytes(self._text))
            self._text.clear()
        elif self._part[b"name"] == b"file":
            self.file_name = _decoded(self._part[b"filename"])


def _decoded(written: bytes) -> str:
    """A text of a form, which is UTF-8 where nobody says otherwise."""
    try:
        return written.decode()
    except UnicodeDecodeError:
        return written.decode("latin-1")


def _check(count: int, most: int, what: str) -> None:
    if count > most:
        raise FormRefusedError(f"the form has more than {most} {what}{'' if most == 1 else 's'}")
