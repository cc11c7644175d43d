"""The cache of small values: several processes, threads and forks, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forked
import pytest

from cir_datasets.common.key_values import KeyValues
from cir_datasets.errors import HashingError

WRITER = """
import sys
from pathlib import Path
from cir_datasets.common.key_values import KeyValues
cache = KeyValues(Path(sys.argv[1]), ValueError)
for number in range(int(sys.argv[3])):
    cache.put({f"{sys.argv[2]} {number}": str(number).encode()})
    print(number, flush=True)
"""


def opened(folder: Path) -> KeyValues:
    return KeyValues(folder / "cache" / "values.sqlite", HashingError)


def test_values_are_kept_and_replaced_and_nothing_is_made_by_looking(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    assert cache.get("a") is None
    assert not cache.file.parent.exists()
    cache.put({"a": b"1", "ä\udcff": b"\x00\xff"})
    cache.put({"a": b"2"})
    again = opened(tmp_path)
    assert (again.get("a"), again.get("ä\udcff"), again.get("b")) == (b"2", b"\x00\xff", None)


def test_a_cache_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.put({"a": b"1"})
    cache.file.unlink()
    assert cache.get("a") is None
    cache.put({"b": b"2"})
    assert (opened(tmp_path).get("a"), opened(tmp_path).get("b")) == (None, b"2")


def test_threads_and_a_forked_copy_share_it(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cache.put({str(number): b"a thread"}), range(40)))
    child = os.fork()
    if child == 0:
        cache.put({"fork": cache.get("7") or b""})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert {cache.get(str(number)) for number in range(40)} == {b"a thread"}
    assert cache.get("fork") == b"a thread"


@pytest.mark.slow
def test_what_was_kept_outlives_kills_of_processes_that_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "values.sqlite"
    names = ("one", "two", "three")
    commands = [[sys.executable, "-c", WRITER, str(file), name, "100000"] for name in names]
    writers = [forked.Process(command, stdout=subprocess.PIPE, text=True) for command in commands]
    kept = []
    for name, writer in zip(names, writers, strict=True):
        kept += [f"{name} {writer.stdout.readline().strip()}" for _ in range(5)]
        writer.kill()
        whole, _, _ = writer.communicate()[0].rpartition("\n")
        kept += [f"{name} {number}" for number in whole.splitlines()]
    cache = KeyValues(file, HashingError)
    assert len(kept) >= 15
    for key in kept:
        assert cache.get(key) == key.split()[1].encode()
    with sqlite3.connect(file) as check:
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.put({"a": b"1"})
    cache.file.write_bytes(b"this was a database once" * 1000)
    with pytest.raises(HashingError, match=r"values\.sqlite: it is damaged\. Fix: remove it\."):
        opened(tmp_path).get("a")
    (tmp_path / "file").write_text("")
    with pytest.raises(HashingError, match=r"cannot be written: .* Fix: make room, or set CIR_CACHE_HOME"):
        opened(tmp_path / "file").put({"a": b"1"})
