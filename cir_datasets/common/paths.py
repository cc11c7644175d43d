"""Where this suite keeps its files, and where it looks for the publishers'."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import platformdirs


def regular(path: str | Path) -> Path:
    """The path of a user's file, before it is opened: a pipe would be waited for without end.

    Args:
        path: of a file.

    Raises:
        OSError: there is none, or it is a folder, a pipe, a socket or a device.

    Example:
        >>> regular("/dev/null")
        Traceback (most recent call last):
        OSError: [Errno 22] it is no regular file, but a folder, pipe, socket or device: '/dev/null'
    """
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file, but a folder, pipe, socket or device", str(path))
    return Path(path)


def cache_home() -> Path:
    """Folder of downloads and prepared benchmarks: `CIR_CACHE_HOME`, else the user's cache folder."""
    configured = os.environ.get("CIR_CACHE_HOME")
    return (
        Path(configured).expanduser().absolute()
        if configured
        else Path(platformdirs.user_cache_dir("cir-benchmarks"))
    )


DATA_VARIABLE = "CIR_DATA_HOME"


def data_home() -> Path | None:
    """Folder that holds the publishers' folders (`CIR_DATA_HOME`), or None where it is not set."""
    configured = os.environ.get(DATA_VARIABLE)
    return Path(configured).expanduser().absolute() if configured else None


def challenge_home() -> Path:
    """Folder of the challenges that are known here: `CIR_CHALLENGES`, else one in the user's data folder."""
    configured = os.environ.get("CIR_CHALLENGES")
    return (
        Path(configured).expanduser().absolute()
        if configured
        else Path(platformdirs.user_data_dir("cir-benchmarks")) / "challenges"
    )


def overlay_home() -> Path:
    """Folder of registered overlays: `CIR_OVERLAYS`, else `overlays` in the cache."""
    configured = os.environ.get("CIR_OVERLAYS")
    return Path(configured).expanduser().absolute() if configured else cache_home() / "overlays"
