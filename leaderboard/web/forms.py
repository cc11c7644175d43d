"""What a form (`multipart/form-data`) may hold, followed while it passes by: files, texts, bytes of texts.

The parser is the one that Starlette and Gradio use, so that both see the same parts. Starlette's own limits
hold where `request.form` is called; Gradio takes 1,000 files and texts of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

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
    """Follows one form.

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
        self._limits = limits
        self._files = self._texts = self._text_bytes = 0
        self._is_text = False
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
                },
            )
        except (KeyError, FormParserError) as error:
            raise FormRefusedError("the form's Content-Type has no boundary, or a very long one") from error

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
        _, options = parse_options_header(self._disposition)
        self._disposition = b""
        if b"name" not in options:
            raise FormRefusedError("a part of the form has no name")
        self._is_text = b"filename" not in options
        if self._is_text:
            self._texts += 1
            _check(self._texts, self._limits.texts, "text")
        else:
            self._files += 1
            _check(self._files, self._limits.files, "file")

    def _on_part_data(self, _data: bytes, start: int, end: int) -> None:
        if self._is_text:
            self._text_bytes += end - start
            if self._text_bytes > TEXT_BYTES:
                raise FormRefusedError(f"the form's texts have more than {TEXT_BYTES:,} bytes")


def _check(count: int, most: int, what: str) -> None:
    if count > most:
        raise FormRefusedError(f"the form has more than {most} {what}{'' if most == 1 else 's'}")
