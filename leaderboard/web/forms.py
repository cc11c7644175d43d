"""The file of a form, on its way to where it is kept; in a file of its own: else it is Starlette's parser.

`Request.form` would write the file to the disk, to be read again and written a second time.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from leaderboard.errors import UploadRefusedError

_FIELDS = 20
_TEXT_BYTES = 64 * 1024
"""Bytes of a text; they are kept in memory."""


class FormIntoFile(MultiPartParser):
    """A form of one file and some texts.

    Args:
        request: whose body it is.
        take: called with the bytes of the file in the field `file`, as they come.
    """

    def __init__(self, request: Request, take: Callable[[bytes], object]) -> None:
        """Begin before the first byte."""
        super().__init__(
            request.headers, request.stream(), max_files=1, max_fields=_FIELDS, max_part_size=_TEXT_BYTES
        )
        self.file_name: str | None = None
        self._take = take

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """Hand the file's bytes on; texts are kept."""
        if self._current_part.file is None:
            super().on_part_data(data, start, end)
        elif self._current_part.field_name == "file":
            self._take(data[start:end])

    async def read(self) -> dict[str, str]:
        """Take the whole form; its texts by their names.

        Raises:
            UploadRefusedError: `bad-form`.
        """
        try:
            form = await self.parse()
        except MultiPartException as error:
            raise UploadRefusedError.of("bad-form", detail=error.message) from error
        file = form.get("file")
        if file is not None and not isinstance(file, str):
            self.file_name = file.filename
        return {name: text for name, text in form.items() if isinstance(text, str)}
