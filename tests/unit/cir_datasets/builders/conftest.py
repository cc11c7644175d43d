"""What tests of builders share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def no_publishers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a new cache, and neither publishers' files nor their servers."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    for name in ("HF_ENDPOINT", "CIR_GITHUB_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
