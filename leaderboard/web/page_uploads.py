"""The folder into which the pages' visitors upload: old files go, and it never grows beyond its quota.

Gradio writes what it is sent into a folder and removes what it remembers of it. Here the folder itself is
looked at, so that broken uploads and those of a process that was killed go too. A file that is checked moves
to the store at once; what stays behind was uploaded and never checked.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from leaderboard.errors import UploadRefusedError
from leaderboard.web.gradio_routes import UPLOAD

_HOUR = 3600.0
_IN_NEED = 600.0
"""Seconds after which a file goes where there is no room for another; a visitor checks theirs sooner."""


class UploadFolder:
    """Files that were uploaded through the pages.

    Args:
        folder: where they lie; made where it is missing.
        most_bytes: that they may have together, with those under way.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Begin with what an earlier process has left."""
        self.folder = folder
        self._most = most_bytes
        self._lock = threading.Lock()
        self._under_way = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.sweep()

    def sweep(self, seconds: float = _HOUR) -> int:
        """Remove what is older than so many seconds.

        Returns:
            Bytes of what is left.
        """
        left, oldest = 0, time.time() - seconds
        for place, _, names in os.walk(self.folder, topdown=False):
            is_old = _changed(Path(place)) < oldest
            for path in (Path(place, name) for name in names):
                with suppress(FileNotFoundError):  # another process may sweep the same folder
                    found = path.stat()
                    if found.st_mtime < oldest:
                        path.unlink()
                    else:
                        left += found.st_size
            if is_old and place != str(self.folder):
                with suppress(OSError):  # it still holds something
                    Path(place).rmdir()
        return left

    def take_room(self, size: int) -> None:
        """Set so many bytes aside for an upload, until `give_back`.

        Raises:
            UploadRefusedError: there is no room for them.
        """
        with self._lock:
            wanted = self._under_way + size
            if self.sweep() + wanted > self._most and self.sweep(_IN_NEED) + wanted > self._most:
                raise UploadRefusedError(
                    "uploads-full",
                    "there is no room for another upload through the page now.",
                    fix="try again in ten minutes, or send the file with  cir submit",
                    status=507,
                )
            self._under_way = wanted

    def give_back(self, size: int) -> None:
        """End of an upload: what it has left is in the folder."""
        with self._lock:
            self._under_way -= size


def _changed(folder: Path) -> float:
    """When something was last put into a folder or removed from it; now, where it is gone."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return time.time()


class RoomForUploads:
    """Lets an upload through to Gradio where there is room for it.

    Args:
        app: Gradio's application.
        folder: where it writes uploads.
        largest: bytes that the body of an upload may have.
    """

    def __init__(self, app: ASGIApp, folder: UploadFolder, largest: int) -> None:
        """Remember them."""
        self._app = app
        self._folder = folder
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set aside what its header says, or what it may have at most."""
        if scope["type"] != "http" or scope["path"] != UPLOAD:
            await self._app(scope, receive, send)
            return
        said = Headers(scope=scope).get("content-length", "")
        size = int(said) if said.isdecimal() else self._largest
        await run_in_threadpool(self._folder.take_room, size)
        try:
            await self._app(scope, receive, send)
        finally:
            self._folder.give_back(size)
