"""Where this suite keeps its files, and where it looks for the publishers'."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


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
