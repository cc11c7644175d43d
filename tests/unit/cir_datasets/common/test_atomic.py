"""A reader finds the old file or the new one, never half of either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cir_datasets.common.atomic import whole_file, write_whole


def write_half(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("durable", [False, True])
def test_a_reader_finds_the_old_file_until_the_new_one_is_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "made/file"
    write_whole(path, b"old", durable=durable)
    with whole_file(path, durable=durable) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"old"
        file.write(b" and the other")
    assert path.read_bytes() == b"half and the other"
    assert list(path.parent.iterdir()) == [path]


def test_what_could_not_be_finished_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"1" * 9)
        second.write(b"22")
    assert path.read_bytes() == b"1" * 9  # the block that ended last
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "rights"), [(0o022, 0o644), (0o027, 0o640)])
def test_the_umask_gives_the_rights(tmp_path: Path, umask: int, rights: int) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == rights
