"""Stored copies in a folder (or fetched from the Hub) and in a bucket: what is kept is what was sent."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_hub import TOKEN, Fault, Hub
from programs import run_program
from s3_server import BUCKET, KEY, S3, SECRET
from says import says

from cir_metrics.errors import CallError
from leaderboard.errors import FileStoreError, LostFileError
from leaderboard.store.files import FileStore, FolderFiles, open_files
from leaderboard.store.hub_repository import Repository

CONTENT = b'{"format":"cir-rank-file"}\r\n'
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = f"{SHA256[:2]}/{SHA256}.json"
REPOSITORY = "me/boards-files"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    with S3() as running:
        for name, value in {
            "AWS_ENDPOINT_URL": running.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    home = tmp_path / "home"
    if request.param == "folder":
        return open_files(home / "files", home)
    request.getfixturevalue("s3")
    return open_files(f"s3://{BUCKET}/a/b", home)


def kept(store: FileStore, content: bytes = CONTENT) -> str:
    incoming = store.incoming()
    incoming.write(content[:5])
    incoming.write(content[5:])
    incoming.keep()
    incoming.discard()
    assert incoming.size == len(content)
    return incoming.sha256


def without_copies(home: Path) -> None:
    shutil.rmtree(home / "copies", ignore_errors=True)


def test_what_is_kept_is_there_and_is_what_was_sent(store: FileStore, tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT, mtime=0)
    assert list(store.names()) == []
    assert kept(store) == SHA256
    assert kept(store) == SHA256
    other = kept(store, packed)
    without_copies(tmp_path / "home")
    assert sorted(store.names()) == sorted([SHA256, other])
    for content, sha256 in ((CONTENT, SHA256), (packed, other)):
        assert store.local_copy(sha256).read_bytes() == content
    store.delete(SHA256)
    store.delete(SHA256)
    assert list(store.names()) == [other]
    with pytest.raises(LostFileError) as caught:
        store.local_copy(SHA256)
    says(caught, NAME, "Fix: ", "backup")


def test_the_layout_is_that_of_earlier_stores(tmp_path: Path, s3: S3) -> None:
    kept(open_files(tmp_path / "files", tmp_path))
    assert [
        path.relative_to(tmp_path / "files").as_posix() for path in (tmp_path / "files").rglob("*.json")
    ] == [NAME]
    kept(open_files(f"s3://{BUCKET}/a/b", tmp_path))
    assert s3.objects == {f"a/b/{NAME}": CONTENT}


def test_what_is_missing_or_damaged_here_is_fetched_from_the_hub(tmp_path: Path, hub: Hub) -> None:
    hub.repository(REPOSITORY).commit({NAME: CONTENT})
    repository = Repository(REPOSITORY, endpoint=hub.url, token=TOKEN, pause=0.001)
    store = FolderFiles(tmp_path / "files", repository.fetch)
    path = store.local_copy(SHA256)
    assert path.read_bytes() == CONTENT
    path.write_bytes(CONTENT[::-1])
    assert store.local_copy(SHA256).read_bytes() == CONTENT
    path.unlink()
    hub.repository(REPOSITORY).commit({NAME: CONTENT[::-1]})
    for lost in (SHA256, "0" * 64):
        with pytest.raises(LostFileError):
            store.local_copy(lost)


def test_what_is_discarded_or_too_large_is_nowhere(store: FileStore, tmp_path: Path) -> None:
    def check(size: int) -> None:
        if size > 10:
            raise ValueError("too large")

    incoming = store.incoming(check)
    incoming.write(b"0123456789")
    with pytest.raises(ValueError, match="too large"):
        incoming.write(b"0")
    assert incoming.size == 10
    incoming.discard()
    assert list(store.names()) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_leftovers_are_swept_after_a_day(store: FileStore, tmp_path: Path) -> None:
    old, young = store.incoming(), store.incoming()
    parts = list(tmp_path.rglob("*.part"))
    assert len(parts) == 2
    os.utime(parts[0], (time.time() - 90_000,) * 2)
    store.sweep()
    assert list(tmp_path.rglob("*.part")) == parts[1:]
    old.discard()
    young.discard()


KILLED = """
import sys, time
from pathlib import Path
from leaderboard.store.files import open_files
incoming = open_files(sys.argv[1], Path(sys.argv[2])).incoming()
incoming.write(b"half of it")
print("written", flush=True)
time.sleep(60)
incoming.keep()
"""


def test_a_process_killed_before_keep_leaves_nothing_that_counts(tmp_path: Path, s3: S3) -> None:
    for address in (str(tmp_path / "home/files"), f"s3://{BUCKET}/a"):
        command = [sys.executable, "-c", KILLED, address, str(tmp_path / "home")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert list(open_files(address, tmp_path / "home").names()) == []
    assert s3.objects == {}


def test_a_damaged_copy_far_away_is_noticed(tmp_path: Path, s3: S3) -> None:
    store = open_files(f"s3://{BUCKET}/a", tmp_path)
    kept(store)
    s3.objects[f"a/{NAME}"] = CONTENT[::-1]
    assert store.local_copy(SHA256).read_bytes() == CONTENT  # the copy here is whole
    without_copies(tmp_path)
    with pytest.raises(LostFileError) as caught:
        store.local_copy(SHA256)
    says(caught, NAME, "damaged", hashlib.sha256(CONTENT[::-1]).hexdigest(), "Fix: ")
    assert not list(tmp_path.rglob(f"{SHA256}.json"))
    kept(store)  # sent again it is whole again
    without_copies(tmp_path)
    assert store.local_copy(SHA256).read_bytes() == CONTENT


def test_a_damaged_copy_here_is_fetched_again(tmp_path: Path, s3: S3) -> None:
    store = open_files(f"s3://{BUCKET}", tmp_path)
    kept(store)
    store.local_copy(SHA256).write_bytes(CONTENT[:-1])
    assert store.local_copy(SHA256).read_bytes() == CONTENT


def test_a_look_names_what_is_missing_or_damaged_and_forgets_what_is_whole_again(
    store: FileStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kept(store)
    wanted, stopped = [SHA256, "0" * 64], threading.Event()
    store.look_over(wanted, stopped)
    assert store.lost == {"0" * 64}
    if isinstance(store, FolderFiles):
        (tmp_path / "home/files" / NAME).write_bytes(CONTENT[::-1])
    else:
        without_copies(tmp_path / "home")
        store.delete(SHA256)
    store.look_over(wanted, stopped)
    assert store.lost == set(wanted)
    kept(store)
    store.look_over([SHA256], stopped)
    assert store.lost == set()


def test_a_file_in_a_folder_is_what_its_name_says(tmp_path: Path) -> None:
    store = open_files(tmp_path / "files", tmp_path)
    kept(store)
    path = store.local_copy(SHA256)
    path.write_bytes(CONTENT[::-1])
    with pytest.raises(LostFileError) as caught:
        store.local_copy(SHA256)
    says(caught, str(path), hashlib.sha256(CONTENT[::-1]).hexdigest(), "Fix: ", "backup")
    assert store.lost == {SHA256}
    kept(store)
    assert store.local_copy(SHA256).read_bytes() == CONTENT
    assert store.lost == set()


@pytest.mark.parametrize("fault", [Fault("status", 503, times=1), Fault("status", 500, times=2)])
def test_a_fault_of_s3_that_passes_is_not_seen(s3: S3, tmp_path: Path, fault: Fault) -> None:
    store = open_files(f"s3://{BUCKET}/a", tmp_path)
    s3.faults["/a/"] = fault
    kept(store)
    assert s3.objects == {f"a/{NAME}": CONTENT}


@pytest.mark.parametrize("status", [400, 403, 404, 507])
def test_a_fault_of_s3_that_stays_acknowledges_nothing(s3: S3, tmp_path: Path, status: int) -> None:
    store = open_files(f"s3://{BUCKET}/a", tmp_path)
    s3.faults["/a/"] = Fault("status", status)
    with pytest.raises(FileStoreError) as caught:
        kept(store)
    says(caught, f"s3://{BUCKET}/a: ", "Fix: ")
    assert s3.objects == {}


def words_of(make: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    """Message, causes and log of a store that cannot be opened."""
    with caplog.at_level(logging.INFO), pytest.raises(FileStoreError) as caught:
        make()
    assert "Fix: " in str(caught.value)
    return f"{caught.value} {caplog.text}"


def test_who_is_refused_learns_it_at_once_and_no_secret_is_shown(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "FileNotFoundError" in words_of(lambda: open_files("s3://no-such-bucket", tmp_path), caplog)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKOTHER")
    words = words_of(lambda: open_files(f"s3://{BUCKET}", tmp_path), caplog)
    says(words, "PermissionError", "AWS_SECRET_ACCESS_KEY")
    assert SECRET not in words
    assert "AKOTHER" not in words


@pytest.mark.parametrize(
    "address",
    [
        "s3://",
        "s3://me:secret@bucket/a",
        "s3://bucket?secret=secret",
        "hf://me/x",
        "hf://datasets/me/files",
        "ftp://a:secret@b/c",
    ],
)
def test_an_address_that_is_not_known_is_refused_without_showing_it(tmp_path: Path, address: str) -> None:
    with pytest.raises(CallError) as caught:
        open_files(address, tmp_path)
    says(
        caught,
        "CIR_LEADERBOARD_FILES: ",
        "Fix: write a folder or s3://BUCKET/PREFIX",
        "CIR_LEADERBOARD_LOG",
    )
    assert "secret" not in str(caught.value)


def test_a_full_disk_is_said_and_nothing_is_kept(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for the disk: writing fails with an error of the system's own."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from leaderboard.store.files import FolderFiles\nfrom leaderboard.errors import FileStoreError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "store = FolderFiles(Path(sys.argv[1])); incoming = store.incoming()\n"
        "try:\n    incoming.write(b'x' * 100_000); incoming.keep()\n"
        "except FileStoreError as error: print(error.status, error)\n"
        "incoming.discard(); files = [p for p in Path(sys.argv[1]).rglob('*') if p.is_file()]\n"
        "print(files, list(store.names()))\n"
    )
    done = run_program([sys.executable, "-c", program, str(tmp_path)])
    says(done.stdout, "507 ", "Fix: make room", "[] []")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    store = FolderFiles(tmp_path / "files")
    (tmp_path / "files/incoming").write_bytes(b"in the way")
    with pytest.raises(FileStoreError) as caught:
        store.incoming()
    says(caught, "files/incoming: File exists", "Fix: ")
    assert caught.value.status == 503
