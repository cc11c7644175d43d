"""The stored copies of what was sent, by sha256: in a folder, or in an S3 bucket.

In all of them a file lies under `ab/<sha256>.json`, whatever it holds: JSON, the same in gzip, another
format. The bytes are those that were sent, and readers of rank files go by the bytes: one name does for all.
A file counts as kept only when it is durable: in a folder its bytes, its name and its folder's entry are on
the disk; a bucket has answered the upload. A file is hashed at each read, and is what its name says or a
`LostFileError`: folders can be written to, and disks decay.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cir_datasets.common.atomic import sync_folder
from cir_datasets.errors import missing_extra, without_secret_cause
from cir_metrics.errors import CallError
from leaderboard.errors import FileStoreError, LostFileError
from leaderboard.settings import Settings

_STALE_SECONDS = 24 * 3600
_NAME = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.json")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.!*'()-]+)*/?", re.ASCII)
_S3_SECONDS = {"connect_timeout": 10, "read_timeout": 60}
_S3_ATTEMPTS = {"max_attempts": 4, "mode": "standard"}
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class IncomingFile:
    """A file on its way in: written to the local disk, counted and hashed as it comes.

    Args:
        folder: where it is written.
        check: called with the number of bytes so far before more are written; raises to refuse.
        keep: makes a complete file durable, from its path and its sha256.
    """

    def __init__(self, folder: Path, check: Callable[[int], None], keep: Callable[[Path, str], None]) -> None:
        """Open an empty file."""
        self._check = check
        self._keep = keep
        self._path = folder / f"{secrets.token_hex(8)}.part"
        with _in_words(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._handle = self._path.open("x+b")
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, chunk: bytes) -> None:
        """Append bytes, unless they are too many.

        Raises:
            FileStoreError: the disk does not take them.
        """
        self._check(self.size + len(chunk))
        with _in_words(self._path.parent):
            self._handle.write(chunk)
        self._hash.update(chunk)  # while it is in the processor's cache; to read it again takes twice as long
        self.size += len(chunk)

    @property
    def sha256(self) -> str:
        """The hash of what has come."""
        return self._hash.hexdigest()

    def end(self, size: int) -> bytes:
        """So many of its last bytes."""
        with _in_words(self._path.parent):
            self._handle.seek(max(0, self.size - size))
        return self._handle.read()

    def keep(self) -> None:
        """Make it durable under its hash; the same bytes lie there once.

        Raises:
            FileStoreError: it could not be made durable, and is not kept.
        """
        with _in_words(self._path.parent):
            self._handle.flush()
            self._keep(self._path, self.sha256)

    def keep_again(self) -> None:
        """Make it durable once more after `keep`: what was kept may have been removed since.

        Its bytes are still here: an open file outlives its name.

        Raises:
            FileStoreError: it could not be made durable, and is not kept.
        """
        with _in_words(self._path.parent):
            self._handle.seek(0)
            with self._path.open("xb") as copy:
                shutil.copyfileobj(self._handle, copy)
            self._keep(self._path, self.sha256)

    def discard(self) -> None:
        """Let it go; what was kept stays kept."""
        with suppress(OSError):  # what was not yet written finds no room: it goes anyway
            self._handle.close()
        self._path.unlink(missing_ok=True)


class FileStore(ABC):
    """The stored copies; `open_files` makes one.

    Args:
        incoming: local folder of files on their way in.
    """

    def __init__(self, incoming: Path) -> None:
        """Remember the folder."""
        self._incoming = incoming
        self.lost: set[str] = set()
        """Hashes of files that were missing or damaged when they were last looked at here."""

    def incoming(self, check: Callable[[int], None] = lambda size: None) -> IncomingFile:
        """A file on its way in.

        Args:
            check: called with the number of bytes so far before more are written; raises to refuse.

        Raises:
            FileStoreError: the local disk does not take it.
        """
        return IncomingFile(self._incoming, check, self._keep)

    def local_copy(self, sha256: str) -> Path:
        """Path of a copy on this machine's disk, checked just now; it is there for a day at least.

        Raises:
            LostFileError: the file is missing or damaged.
            FileStoreError: its place cannot be reached now.
        """
        try:
            path = self._checked(sha256)
        except LostFileError:
            self.lost.add(sha256)
            raise
        self.lost.discard(sha256)
        return path

    def look_over(self, wanted: Iterable[str], stopped: threading.Event) -> None:
        """Bring `lost` up to date: what cannot be seen to be as it was at the last look is read.

        Args:
            wanted: hashes of the files that should be there.
            stopped: ends the look when it is set.

        Raises:
            FileStoreError: their place cannot be reached now.
        """
        every = set(wanted)
        self.lost &= every
        for sha256 in every:
            if not stopped.is_set() and self._may_have_changed(sha256):
                with suppress(LostFileError):
                    self.local_copy(sha256)

    def sweep(self) -> None:
        """Remove what a crash left behind a day ago or earlier."""
        _remove_stale(self._incoming.glob("*.part"))

    @abstractmethod
    def _checked(self, sha256: str) -> Path:
        """See `local_copy`."""

    @abstractmethod
    def _may_have_changed(self, sha256: str) -> bool:
        """Whether a file is to be read to know that it is whole."""

    @abstractmethod
    def delete(self, sha256: str) -> None:
        """Remove the file of that hash, if there is one."""

    @abstractmethod
    def names(self) -> Iterator[str]:
        """The hashes of all files."""

    @abstractmethod
    def _keep(self, path: Path, sha256: str) -> None:
        """Make a complete local file durable; `path` is gone afterwards."""


class FolderFiles(FileStore):
    """Files in a folder of this machine: `ab/<sha256>.json`, and `incoming/` beside them.

    Args:
        folder: the folder; made where it is missing.
        fetch: writes the file of a name to a path from where the folder's files are as well; whether there is
            one.
    """

    def __init__(self, folder: Path, fetch: Callable[[str, Path], bool] | None = None) -> None:
        """Make the folder."""
        super().__init__(folder / "incoming")
        self._folder = folder
        self._fetch = fetch
        self._seen: dict[str, tuple[int, ...]] = {}
        self._subfolders: set[str] = set()
        with _in_words(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def _checked(self, sha256: str) -> Path:
        if self._fetch is not None:
            with suppress(LostFileError):
                return self._here(sha256)
            with _in_words(self._folder), tempfile.TemporaryDirectory(dir=self._folder) as folder:
                got = Path(folder) / "file"
                if self._fetch(file_path(sha256), got):
                    self._keep(got, sha256)
        return self._here(sha256)

    def _here(self, sha256: str) -> Path:
        path = self._folder / file_path(sha256)
        with _in_words(path):
            try:
                seen = _stamp(path)
                _refuse_damaged(path, sha256, str(path))
            except FileNotFoundError:
                raise LostFileError(
                    f"{path}: no such file. Fix: take it from a backup of the leaderboard's files."
                ) from None
        self._seen[sha256] = seen
        return path

    def _may_have_changed(self, sha256: str) -> bool:
        path = self._folder / file_path(sha256)
        with _in_words(path):
            try:
                return _stamp(path) != self._seen.get(sha256)
            except FileNotFoundError:
                return True

    def delete(self, sha256: str) -> None:
        """See `FileStore`."""
        path = self._folder / file_path(sha256)
        with _in_words(self._folder):
            if path.exists():
                path.unlink()
                sync_folder(path.parent)

    def names(self) -> Iterator[str]:
        """See `FileStore`."""
        return _hashes(path.relative_to(self._folder).as_posix() for path in self._folder.glob("??/*.json"))

    def _keep(self, path: Path, sha256: str) -> None:
        target = self._folder / file_path(sha256)
        folder = target.parent
        if folder.name not in self._subfolders:
            folder.mkdir(exist_ok=True)
            sync_folder(self._folder)  # also where another process has made it, and not synced it yet
            self._subfolders.add(folder.name)
        try:
            # Its name before its bytes: the file system's journal has both in one turn.
            target.hardlink_to(path)
        except OSError:
            # It lies there, perhaps durable, or there are no links: its name comes to bytes that are.
            _sync(path)
            path.replace(target)
        else:
            _sync(path)
            path.unlink()
        sync_folder(folder)


class BucketFiles(FileStore):
    """Files in a bucket, or a part of one.

    An upload is one request: S3 answers it when the object is durable, and no reader sees half of it. Failed
    requests (408, 429, 5xx, broken connections) are tried again by botocore, four times in all.

    Args:
        root: bucket and prefix, `bucket/boards`.
        incoming: local folder of files on their way in.
        copies: local folder of copies, on the same disk; they may go at any time.

    Raises:
        MissingExtraError: s3fs is not installed.
        FileStoreError: the bucket cannot be reached, or refuses us.
    """

    def __init__(self, root: str, incoming: Path, copies: Path) -> None:
        """Look whether the bucket is there."""
        super().__init__(incoming)
        self._copies = copies
        self._there: frozenset[str] = frozenset()
        try:
            import s3fs
        except ImportError as error:
            raise missing_extra("the keeping of rank files in S3", "s3fs", "server") from error
        self._root = root
        self._s3: Any = s3fs.S3FileSystem(
            config_kwargs={**_S3_SECONDS, "retries": _S3_ATTEMPTS},
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        with self._asked():
            self._s3.call_s3("head_bucket", Bucket=root.partition("/")[0])

    def look_over(self, wanted: Iterable[str], stopped: threading.Event) -> None:
        """See `FileStore`; what is there by name is read when it is needed: all of it is far away."""
        self._there = frozenset(self.names())
        super().look_over(wanted, stopped)

    def _may_have_changed(self, sha256: str) -> bool:
        return sha256 in self.lost or sha256 not in self._there

    def _checked(self, sha256: str) -> Path:
        name = file_path(sha256)
        path = self._copies / name
        with _in_words(self._copies):
            if path.is_file() and hash_of(path) == sha256:
                path.touch()
                return path
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".get-", dir=self._copies) as folder:
                got = Path(folder) / "file"
                with self._asked():
                    try:
                        got.write_bytes(self._s3.cat_file(f"{self._root}/{name}"))
                    except FileNotFoundError:
                        raise LostFileError(
                            f"{name}: not in the store of rank files. Fix: take it from a backup."
                        ) from None
                _refuse_damaged(got, sha256, f"{name}, as the store of rank files gave it back")
                got.replace(path)
        return path

    def delete(self, sha256: str) -> None:
        """See `FileStore`; S3 answers likewise where there is none."""
        with self._asked():
            self._s3.rm_file(f"{self._root}/{file_path(sha256)}")
        (self._copies / file_path(sha256)).unlink(missing_ok=True)

    def names(self) -> Iterator[str]:
        """See `FileStore`."""
        with self._asked():
            found = self._s3.find(self._root)
        return _hashes(path.removeprefix(f"{self._root}/") for path in found)

    def sweep(self) -> None:
        """Remove what crashes left, and copies that nobody has read for a day."""
        super().sweep()
        _remove_stale(self._copies.glob("??/*.json"))
        _remove_stale(self._copies.glob(".get-*/*"))

    def _keep(self, path: Path, sha256: str) -> None:
        name = file_path(sha256)
        with self._asked():
            self._s3.pipe_file(f"{self._root}/{name}", path.read_bytes())
        copy = self._copies / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        path.replace(copy)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Say what went wrong, without the library's words: they may hold a key's id."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (OSError, BotoCoreError, ClientError) as error:
            refused = isinstance(error, PermissionError) or "Credential" in type(error).__name__
            fix = (
                "check the keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) and what they may do"
                if refused
                else "check the bucket, AWS_ENDPOINT_URL and the network, and try again"
            )
            raise FileStoreError(
                f"s3://{self._root}: {type(error).__name__}. Fix: {fix}."
            ) from without_secret_cause(error)


def open_files(address: str | Path, home: Path) -> FileStore:
    """The file store at an address.

    Args:
        address: a folder or `s3://BUCKET/PREFIX`. The environment has the keys: `AWS_ACCESS_KEY_ID` and its
            like, with `AWS_ENDPOINT_URL` for other servers that speak S3.
        home: the leaderboard's home, for files on their way in and copies of files far away.

    Raises:
        CallError: the address is none of these.
        FileStoreError: the place cannot be reached, or refuses us.
    """
    text = str(address)
    if _BUCKET.fullmatch(text):
        return BucketFiles(text.removeprefix("s3://").rstrip("/"), home / "incoming", home / "copies")
    if "://" in text:
        raise CallError(
            "CIR_LEADERBOARD_FILES: not an address that is known here. Fix: write a folder or "
            "s3://BUCKET/PREFIX; a repository of the Hub is named by CIR_LEADERBOARD_LOG; keys and tokens "
            "belong into the environment."
        )
    return FolderFiles(Path(text).expanduser().absolute())


def files_of(chosen: Settings) -> FileStore:
    """The file store that a leaderboard's settings name; see `open_files`."""
    if chosen.log:
        from leaderboard.store.hub_repository import Repository

        return FolderFiles(chosen.files, Repository(chosen.log).fetch)
    return open_files(chosen.files_at or chosen.files, chosen.home)


def _sync(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def file_path(sha256: str) -> str:
    """Where a file lies below its place."""
    return f"{sha256[:2]}/{sha256}.json"


def _hashes(names: Iterator[str]) -> Iterator[str]:
    """The hashes of those that are named as we name files."""
    return (found[1] for found in map(_NAME.fullmatch, names) if found)


def hash_of(path: Path) -> str:
    """sha256 of a file, hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _refuse_damaged(path: Path, sha256: str, named: str) -> None:
    found = hash_of(path)
    if found != sha256:
        raise LostFileError(
            f"{named}: is damaged: its sha256 is {found}. Fix: take the file from a backup, or let whoever "
            "sent it send it again."
        )


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when somebody writes a file or puts another in its place."""
    found = path.stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _remove_stale(paths: Iterator[Path]) -> None:
    for path in paths:
        try:
            if path.stat().st_mtime < time.time() - _STALE_SECONDS:
                path.unlink()
        except FileNotFoundError:  # another process sweeps too
            continue


@contextmanager
def _in_words(place: Path) -> Iterator[None]:
    """Say what the system refuses as a `FileStoreError`."""
    try:
        yield
    except OSError as error:
        full = error.errno in _NO_SPACE
        raise FileStoreError(
            f"{place}: {error.strerror or type(error).__name__}. "
            f"Fix: {'make room on that disk' if full else 'check the disk and who may write there'}.",
            status=507 if full else 503,
        ) from without_secret_cause(error)
