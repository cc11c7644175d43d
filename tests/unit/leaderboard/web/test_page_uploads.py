"""The folder of uploads through the pages: its quota, and what goes when."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from leaderboard.errors import UploadRefusedError
from leaderboard.web.page_uploads import UploadFolder


def put(path: Path, size: int, age: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    for each in (path, path.parent):
        os.utime(each, (time.time() - age,) * 2)
    return path


def test_what_is_older_than_an_hour_goes_and_its_folder_too(tmp_path: Path) -> None:
    old, broken = put(tmp_path / "a" / "run.json", 10, 3700), put(tmp_path / "tmpx", 10, 3700)
    young = put(tmp_path / "b" / "run.json", 7, 3500)
    os.utime(tmp_path, (0, 0))
    folder = UploadFolder(tmp_path, 100)
    assert not old.parent.exists()
    assert not broken.exists()
    assert young.exists()
    assert folder.sweep() == 7


def test_what_is_under_way_counts_until_it_ends(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path / "made", 100)
    folder.take_room(60)
    with pytest.raises(UploadRefusedError, match="uploads-full") as refused:
        folder.take_room(60)
    assert refused.value.status == 507
    folder.give_back(60)
    folder.take_room(60)


def test_files_of_ten_minutes_go_only_where_there_is_no_room(tmp_path: Path) -> None:
    folder = UploadFolder(tmp_path, 100)
    waiting = put(tmp_path / "a" / "run.json", 50, 700)
    fresh = put(tmp_path / "b" / "run.json", 30, 10)
    folder.take_room(20)
    assert waiting.exists()
    folder.take_room(40)
    assert not waiting.exists()
    assert fresh.exists()
    with pytest.raises(UploadRefusedError, match="uploads-full"):
        folder.take_room(20)
    assert fresh.exists()
