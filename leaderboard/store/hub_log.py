"""The store's log on the Hugging Face Hub: what the database holds is committed to a dataset repository.

SQLite in the home is the working copy, and notes which rows change (`hub_rows`). A thread of the web process
commits these with new rank files: `log/000001.jsonl` and so on; of a row the newest line counts. Commits are
rare (the Hub takes 128 an hour), so they hold more where more happens. An empty disk is filled from the
repository; a kept one commits what is left.

People's names stand in `people.json`, which is rewritten; the rows have ids in their places. When a
submission is erased, and when there are many segments, the next one holds all rows, and the earlier ones go.

Commands elsewhere hand in what they change (`inbox/`), and the server takes that in.

One server writes. `writer.json` says which: each commit names its parent, so that a second writer is noticed.
A server that finds another takes its place, and gives it back where that one answers; it writes when that one
has ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import secrets
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from leaderboard.errors import FileStoreError, SubmissionStoreError
from leaderboard.settings import DEFAULT_COMMITS_AN_HOUR, Durability, Settings
from leaderboard.store import Store
from leaderboard.store.hub_repository import Bucket, HubRefusedError, MovedError, Repository, TooOftenError
from leaderboard.store.hub_rows import HubRows

log = logging.getLogger("leaderboard.log")

_PEOPLE, _WRITER, _KEY = "people.json", "writer.json", "signing_key.pem"
_SEGMENTS = 500
"""From so many on, the next one holds all rows, and takes their place."""
_FILES = 200
"""Rank files in a commit; where a leaderboard is taken over, others come first."""
_GRACE_SECONDS = 20.0
"""How long a server that finds another writer waits for its answer."""
_LOOK_SECONDS = 5.0
"""How often the writer looks whether somebody asks; a good part of the time that they wait."""
_POLL_SECONDS = 0.5
_TROUBLE_SECONDS = 5.0
_ALARM_SECONDS = 300.0
"""From so long on, pages say that nothing is committed; at once where the Hub refuses us."""
_TROUBLE = (FileStoreError, SubmissionStoreError, SQLAlchemyError, OSError, ValueError)
"""What may go wrong with the Hub, the disk and files that others left there; the thread goes on."""
_ANSWER_SECONDS = 60.0
"""How long an upload's answer waits for a commit."""
_ANSWER_POLL_SECONDS = 0.05
_LAST_SECONDS = 30.0


class HubLog:
    """Commits what the store holds, and fills it.

    Args:
        store: the working copy, on SQLite.
        repository: where to.
        home: the leaderboard's home: rank files are in `files`, the key of receipts beside it.
        commits_an_hour: how many commits the repository takes.
    """

    def __init__(
        self, store: Store, repository: Repository, home: Path, commits_an_hour: int = DEFAULT_COMMITS_AN_HOUR
    ) -> None:
        """Nothing is asked of the Hub yet; rows that change are noted from now on."""
        self._store, self._repository, self._home = store, repository, home
        self._rows = HubRows(store)
        self._bucket = Bucket(commits_an_hour, commits_an_hour, time.time())
        self._stop, self._news = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._committed = 0
        self._entered = False
        self._failing_since: float | None = None
        self._handed_in: set[str] = set()
        self._head, self._names = "", set[str]()
        self._seen = ""

    @classmethod
    def of(cls, chosen: Settings, store: Store) -> HubLog:
        """The log that a leaderboard's settings name."""
        return cls(store, Repository(chosen.log), chosen.home, chosen.commits_an_hour)

    @classmethod
    @contextmanager
    def changes(cls, chosen: Settings) -> Iterator[Store]:
        """A copy of what the log holds, for a command elsewhere; the server takes over what is changed in it.

        Raises:
            FileStoreError: the repository is public, cannot be reached, or refuses us.
        """
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            with closing(Store(f"sqlite:///{home / 'leaderboard.sqlite'}")) as store:
                hub_log = cls.of(replace(chosen, home=home), store)
                hub_log._repository.open()
                hub_log._look()
                hub_log._catch_up()
                hub_log._take_in()
                hub_log._rows.forget(hub_log._rows.last_noted(), hub_log._rows.position)
                yield store
                hub_log.hand_in()

    # Opening.

    def open(self) -> None:
        """Become the writer, or a reader where there is another; then fill the store with what it lacks.

        Raises:
            FileStoreError: the repository is public, cannot be reached, or refuses us.
            SubmissionStoreError: the log went on elsewhere while this store has what is not in it.
        """
        self._repository.open()
        self._look()
        first = next(iter(self._below("log/")), "")
        if first and _number(first) > 1 and not self._said(first)["whole"]:
            raise SubmissionStoreError(
                f"{self._repository.shown}: segments before {first} are missing. Fix: put them back from an "
                "earlier commit of the repository, or name an empty one, which a home with all rows fills."
            )
        holder = self._holder()
        try:
            self._enter(holder)
        except HubRefusedError:
            raise
        except FileStoreError as error:
            log.warning("who writes cannot be said now, which is tried again: %s", error)
        self._catch_up()
        if self._entered:
            self._take_in()
        key = self._home / _KEY
        if _KEY in self._names and not key.exists():
            with tempfile.TemporaryDirectory(prefix=".key-", dir=self._home) as folder:
                path = Path(folder) / _KEY
                self._repository.fetch(_KEY, path, self._head)
                path.chmod(0o600)
                path.replace(key)

    def _enter(self, holder: dict[str, Any]) -> None:
        """Say that this server writes, or ask the one that does."""
        if not self._is_free(holder):
            self._ask()
        elif holder.get("writer") != self._rows.writer or holder.get("released"):
            self._claim(established=True)
        self._entered = True

    def _is_free(self, holder: dict[str, Any]) -> bool:
        return not holder or bool(holder.get("released")) or holder["writer"] == self._rows.writer

    def _ask(self) -> None:
        """Take the other's place, and wait whether it takes it back."""
        self._store.reads_only = True
        self._claim(established=False)
        until = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < until:
            if self._stop.wait(min(1.0, _GRACE_SECONDS / 5)):
                return
            self._look()
            if self._holder().get("writer") != self._rows.writer:
                return
        self._store.reads_only = not self._claim(established=True)

    def _claim(self, *, established: bool) -> bool:
        """Write who writes; where somebody else is faster, they do. Whether it is this server."""
        try:
            self._commit("Say who writes", {}, (), established=established)
        except MovedError:
            self._look()
            if not self._is_free(self._holder()):
                self._store.reads_only = True
                return False
            self._catch_up()
            return self._claim(established=established)
        return True

    def _look(self) -> None:
        head = self._repository.head()
        self._head, self._names = head, self._repository.names(head)

    def _holder(self) -> dict[str, Any]:
        found = json.loads(self._repository.read(_WRITER, self._head) or b"{}")
        if found:
            level, at = found["bucket"]
            self._bucket = Bucket(self._bucket.an_hour, level, at)
        return dict(found)

    def _below(self, folder: str) -> list[str]:
        return sorted(name for name in self._names if name.startswith(folder))

    def _catch_up(self) -> None:
        """Take in what the log has and the store has not."""
        position, names = self._rows.position, self._below("log/")
        last = _number(names[-1]) if names else 0
        if names and _number(names[0]) + len(names) != last + 1:
            raise SubmissionStoreError(
                f"{self._repository.shown}: a segment is missing between {names[0]} and {names[-1]}. Fix: "
                " put it back from an earlier commit of the repository."
            )
        if last < position and names:
            raise SubmissionStoreError(
                f"{self._repository.shown}: the log ends with {names[-1]}, and {self._store.database.shown} "
                f"has what came up to segment {position}: the repository went back, or is another "
                "leaderboard's. Fix: name the right repository, put its newest commit back, or name an empty "
                "one, which this home fills."
            )
        if last < position and not self._store.reads_only:
            log.warning("%s: is empty, and is filled from here", self._repository.shown)
            self._rows.begin_anew()
            return
        if (
            position < last == self._rows.attempted
            and self._said(names[-1]).get("writer") == self._rows.writer
        ):
            position = last  # our own; nobody was there to hear the answer
            self._rows.forget(0, last)
        if last == position:
            return
        if self._rows.last_noted() and not (position == 0 and self._store.is_empty()):
            raise SubmissionStoreError(
                f"{self._store.database.shown}: has what was never committed, and {self._repository.shown} "
                "has what is not here: another server wrote it meanwhile. Fix: start with another home; then "
                "compare with what this one shows without CIR_LEADERBOARD_LOG."
            )
        self._replay([name for name in names if _number(name) > position])

    def _said(self, name: str) -> dict[str, Any]:
        """The first line of a segment."""
        first = (self._repository.read(name, self._head) or b"{}").partition(b"\n")[0]
        return dict(json.loads(first))

    # Replaying.

    def _replay(self, names: Sequence[str]) -> None:
        people: dict[str, str] = json.loads(self._repository.read(_PEOPLE, self._head) or b"{}")
        with tempfile.TemporaryDirectory(prefix=".log-", dir=self._home) as folder:
            self._repository.fetch_all(names, Path(folder), self._head)
            self._rows.replay(((_number(name), Path(folder) / name) for name in names), people)

    # Committing.

    def start(self) -> None:
        """Commit in the background, until `stop`."""
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Commit what is left, and say that nobody writes now."""
        self._stop.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(_LAST_SECONDS)

    @property
    def fails(self) -> bool:
        """Whether the Hub refuses us, or nothing could be committed for minutes."""
        since = self._failing_since
        return since is not None and time.monotonic() >= since + _ALARM_SECONDS

    def news(self) -> None:
        """Something was written: commit it soon."""
        self._news.set()

    def committed(self, submission_id: str) -> Durability:
        """Whether a submission is in the log as it stands now."""
        return "journalled" if self._rows.is_noted(submission_id) else "committed"

    def mark(self) -> int:
        """The number of the last change so far, which is committed soon; see `reached`."""
        self._news.set()
        return self._rows.last_noted()

    async def reached(self, mark: int, seconds: float = _ANSWER_SECONDS) -> bool:
        """Wait until that change is committed; whether it is. No thread is held meanwhile."""
        until = time.monotonic() + seconds
        while self._committed < mark and time.monotonic() < until:
            await asyncio.sleep(_ANSWER_POLL_SECONDS)
        return self._committed >= mark

    def _run(self) -> None:
        looked = rested = time.monotonic()
        while not self._stop.is_set():
            try:
                if time.monotonic() >= looked + _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._see()
                ready = time.monotonic() >= rested and not self._bucket.wait(time.time())
                if ready and not self._entered:
                    self._look()
                    self._enter(self._holder())
                    self._catch_up()
                    self._take_in()
                if ready and not self._store.reads_only and self._rows.last_noted():
                    self.flush()
                if ready:
                    self._failing_since = None
            except _TROUBLE as error:
                if isinstance(error, TooOftenError):
                    log.warning("%s", error)
                else:
                    log.exception("what was journalled cannot be committed now")
                rested = time.monotonic() + (getattr(error, "seconds", 0) or _TROUBLE_SECONDS)
                if isinstance(error, HubRefusedError):
                    self._failing_since = -math.inf
                elif self._failing_since is None:
                    self._failing_since = time.monotonic()
            if self._news.wait(_POLL_SECONDS):
                self._news.clear()
        try:
            if not self._store.reads_only:
                self.flush(released=True)
        except _TROUBLE:
            log.exception("what was journalled last is not committed; it is on the disk")

    def _see(self) -> None:
        """Look what others have committed: a reader takes it in, the writer answers who asks."""
        if self._repository.head() == self._seen:
            return
        self._look()
        head, holder, reads_only = self._head, self._holder(), self._store.reads_only
        if not reads_only and not self._is_free(holder) and holder["established"]:
            self._store.reads_only = True
            log.error("%s is written by another server: this one reads only", self._repository.shown)
        else:
            self._catch_up()
            if self._is_free(holder) if reads_only else holder.get("writer") != self._rows.writer:
                # Before anything is noted here: who loses the race has nothing that is not in the log.
                self._store.reads_only = not self._claim(established=True)
            self._take_in()
        if reads_only and not self._store.reads_only:
            log.warning("%s is written by nobody else now: this server does", self._repository.shown)
        self._seen = head  # at last: what failed is tried again

    def _take_in(self) -> None:
        """Take in what commands elsewhere have handed in, where this server writes."""
        for name in () if self._store.reads_only else self._below("inbox/"):
            if name in self._handed_in:
                continue
            lines = self._repository.read(name, self._head) or b""
            try:
                self._rows.take_in(name, lines)
            except (SubmissionStoreError, SQLAlchemyError):
                log.exception("%s: cannot be taken in", name)
                continue
            except (ValueError, TypeError, AttributeError, LookupError):
                log.exception("%s: is damaged, and goes with the next commit", name)
            self._handed_in.add(name)

    def hand_in(self) -> None:
        """Leave what has changed in the log's inbox, for the server that writes.

        Raises:
            FileStoreError: it cannot be committed now.
        """
        lines = self._rows.changed()
        while lines:
            try:
                self._look()
                earlier = self._below("inbox/")
                number = 1 + _number(earlier[-1].partition("-")[0]) if earlier else 1
                name = f"inbox/{number:06d}-{secrets.token_hex(8)}.jsonl"  # the server takes the first first
                self._repository.commit("Hand in", self._head, {name: lines})
                return
            except MovedError:
                continue

    def flush(self, *, released: bool = False) -> None:
        """Commit what is noted, in one commit.

        Raises:
            FileStoreError: it cannot be committed now; it stays noted.
        """
        if self._seen != self._head:  # or it would follow what is not here
            self._see()
        if self._store.reads_only:
            return
        number, earlier = self._rows.position + 1, self._below("log/")
        with tempfile.TemporaryDirectory(prefix=".log-", dir=self._home) as folder:
            path = Path(folder) / "segment"
            made = self._rows.write(path, number, self._names, whole=len(earlier) >= _SEGMENTS)
            files = [(name, self._home / "files" / name) for name in made.added]
            files = [each for each in files if each[1].exists()]
            while len(files) > _FILES:
                self._commit("Files", dict(files[:_FILES]), (), established=True)
                files = files[_FILES:]
            added: dict[str, bytes | Path] = dict(files)
            if made.rows:
                people = json.dumps(made.people, ensure_ascii=False, indent=0).encode()
                added |= {f"log/{number:06d}.jsonl": path, _PEOPLE: people}
            handed_in = sorted(self._handed_in & self._names)
            removed = [*made.removed, *handed_in, *(earlier if made.whole else ())]
            key = self._home / _KEY
            if _KEY not in self._names and key.exists():
                added[_KEY] = key
            try:
                said = f"{made.rows} rows"
                self._commit(said, added, removed, established=True, released=released)
            except MovedError:
                self._see()
                return
        self._rows.forget(made.upto, number if made.rows else number - 1)
        self._committed = max(self._committed, made.upto)

    def _commit(
        self,
        message: str,
        added: dict[str, bytes | Path],
        removed: Iterable[str],
        *,
        established: bool,
        released: bool = False,
    ) -> None:
        self._bucket.take(time.time())
        bucket = [self._bucket.level, self._bucket.at]
        who = {
            "writer": self._rows.writer,
            "established": established,
            "released": released,
            "bucket": bucket,
        }
        added = {**added, _WRITER: json.dumps(who).encode()}
        head = self._repository.commit(message, self._head, added, removed)
        if self._seen == self._head:
            self._seen = head
        self._head = head
        self._names = (self._names | set(added)) - set(removed)


def _number(name: str) -> int:
    """Of a segment."""
    return int(Path(name).stem)
