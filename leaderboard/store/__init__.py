"""The store: submissions and their append-only event log, on SQLite or PostgreSQL.

A change and the event that tells of it are one transaction. What a submission shows is read from its events;
`state` and a few other columns repeat it for queries.

No event disappears, and none is changed, with one exception: to erase a submission replaces, in the same
transaction, what its events hold of its sender's words (`erase_texts`). Their kinds, order and times stay.
"""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError

from leaderboard.errors import ConflictError, UploadRefusedError
from leaderboard.settings import Settings
from leaderboard.store.database import Database, check_copy, hold_board, take_turns, upsert
from leaderboard.store.files import files_of
from leaderboard.store.schema import board_states, events, jobs, submissions, swept, values, views, workers
from leaderboard.store.submission import (
    NO_STATE,
    WAITING,
    By,
    Event,
    EventKind,
    State,
    Submission,
    name_key,
    state_after,
    without_person,
)
from leaderboard.store.sweeping import claim, refuse_swept

log = logging.getLogger("leaderboard.store")

_AGAIN: tuple[State, ...] = ("rejected", "failed", "superseded", "withdrawn")
"""States after which the same file may be sent again."""
_SHOWN: tuple[EventKind, ...] = (
    "published",
    "private",
    "withdrawn",
    "superseded",
    "hidden",
    "restored",
    *NO_STATE,
)
"""Events that may change what a board shows."""

_PAUSED = sa.select(board_states.c.paused).where(board_states.c.board == sa.bindparam("of_board"))
_LATEST = (
    sa.select(submissions.c.id)
    .where(submissions.c.board == sa.bindparam("of_board"), submissions.c.sha256 == sa.bindparam("of_file"))
    .where(submissions.c.owner == sa.bindparam("of_owner"))
    .order_by(submissions.c.attempt.desc())
    .limit(1)
)
_NEW, _EVENT, _JOB = submissions.insert(), events.insert(), jobs.insert()
_NUMBER = (
    submissions.update()
    .where(submissions.c.id == sa.bindparam("of_id"))
    .values(number=sa.bindparam("its_number"))
)
"""Statements of each upload: to put them together takes longer than to execute them."""

Happened = tuple[EventKind, Mapping[str, Any]]
Decide = Callable[[sa.Connection], Sequence[Happened]]
"""What happens to a submission, decided from what stands on its board, in the transaction that writes it."""


def erase_texts(connection: sa.Connection, submission_id: str | None = None) -> None:
    """Replace what the events of erased submissions hold of their senders' words.

    Args:
        connection: a transaction that writes.
        submission_id: one of them; None for all.
    """
    if connection.dialect.name == "sqlite":
        # Or the old words would stay in the file, in its free pages.
        connection.exec_driver_sql("PRAGMA secure_delete = ON")
    erased = sa.select(events.c.submission_id).where(events.c.kind == "erased")
    if submission_id is not None:
        erased = erased.where(events.c.submission_id == submission_id)
    theirs = sa.select(events.c.id, events.c.payload).where(events.c.submission_id.in_(erased))
    for number, payload in connection.execute(theirs).all():
        kept = without_person(payload)
        if kept != payload:
            connection.execute(events.update().where(events.c.id == number).values(payload=kept))


class Store:
    """The leaderboard's memory.

    Args:
        url: SQLAlchemy's URL, `sqlite:////home/me/leaderboard.sqlite`; the folder must exist.
        has_files: says whether rank files lie where this store's files lie; a new database beside them is
            refused.

    Raises:
        SubmissionStoreError: the database cannot be opened, is damaged, or a newer version of this package
            wrote it.
    """

    def __init__(self, url: str, has_files: Callable[[], bool] = lambda: False) -> None:
        """Open the database and bring its tables to the newest schema."""
        self.database = Database(url, has_files)
        self.reads_only = False
        """Whether another server writes the log: nothing may happen to a submission here."""

    @classmethod
    def of(cls, chosen: Settings, *, fills: bool = False) -> Store:
        """The store that a leaderboard's settings name; a new database beside its rank files is refused.

        Args:
            chosen: the settings.
            fills: whether the caller fills it from the log, where there is one; others need a copy of that.
        """
        if chosen.log and not fills:
            check_copy(chosen)
        return cls(
            chosen.database_url, lambda: not chosen.log and any(True for _ in files_of(chosen).names())
        )

    def close(self) -> None:
        """Give the connections back."""
        self.database.close()

    def refuse_if_read_only(self) -> None:
        """Refuse to change anything where another server writes.

        Raises:
            UploadRefusedError: `reads-only`.
        """
        if self.reads_only:
            raise UploadRefusedError.of("reads-only")

    def receive(
        self,
        *,
        board: str,
        sha256: str,
        size: int,
        file_name: str,
        owner: str = "",
        submitter: str = "",
        form: Mapping[str, Any] | None = None,
        baseline: bool = False,
        publish: bool = True,
        edit_hash: str | None = None,
        arrive: Callable[[sa.Connection], object] = lambda connection: None,
        admit: Callable[[sa.Connection], object] = lambda connection: None,
        put_back: Callable[[], object] = lambda: None,
        since: datetime | None = None,
    ) -> tuple[Submission, bool]:
        """Record a durable file as a submission that waits, unless its owner has sent it before.

        The same bytes of the same owner for the same board give the submission that exists, except where that
        one was rejected, failed, was superseded or withdrawn: then a new attempt begins, for what was sent
        beside the file may have changed. So it does where that one came before `since`, when the board's open
        phase began, unless the organisers have hidden it. One that waits is published when it is scored,
        where that is asked now. Files of one owner for one board are recorded one after the other; `admit`
        refuses a new one by raising, in the transaction that would record it; what `arrive` writes before is
        kept where a file is refused, too, also by itself.

        Where the file was swept away after it had been made durable, `put_back` makes it so once more.

        Returns:
            The submission, and whether it is new.
        """
        row = {
            "board": board,
            "sha256": sha256,
            "size": size,
            "file_name": file_name,
            "owner": owner,
            "edit_hash": edit_hash,
            "submitter": submitter,
            "form": dict(form or {}),
            "baseline": baseline,
            "publish": publish,
        }
        self.refuse_if_read_only()

        def recorded(connection: sa.Connection) -> tuple[Submission, bool] | UploadRefusedError:
            try:
                arrive(connection)
                take_turns(connection, f"{board}\n{owner}")
                latest = self._latest_attempt(connection, board, sha256, owner)
                if publish and latest is not None and latest.state in WAITING:
                    # Its worker may be about to end it: what is asked comes before, or to what it became.
                    hold_board(connection, board)
                    latest = self.reread(connection, latest)
                anew = latest is None or _may_begin_anew(latest, row, since)
                if anew:
                    admit(connection)
            except UploadRefusedError as error:
                return error
            claim(connection, sha256, put_back)
            if latest is not None and not anew:
                if publish and latest.state in WAITING:
                    mine = submissions.c.id == latest.id
                    connection.execute(submissions.update().where(mine).values(publish=True))
                return latest, False
            return self._received(connection, row, latest), True

        found = self.database.together(recorded)
        if isinstance(found, UploadRefusedError):
            raise found
        return found

    def _received(
        self, connection: sa.Connection, row: Mapping[str, Any], latest: Submission | None
    ) -> Submission:
        """Record a submission that waits."""
        now = datetime.now(UTC)
        attempt = 1 if latest is None else latest.attempt + 1
        new = {"id": secrets.token_hex(6), "attempt": attempt, "received_at": now, **row}
        connection.execute(_NEW, new)
        payload = {"sha256": row["sha256"], "size": row["size"]}
        number = _insert_event(connection, new["id"], 1, "received", payload, now, "owner")
        connection.execute(_NUMBER, {"of_id": new["id"], "its_number": number})
        connection.execute(_JOB, {"submission_id": new["id"]})
        event = Event(1, "received", now, payload, "owner", number)
        return Submission(number=number, method=None, events=(event,), **new)

    def append(
        self,
        submission: Submission,
        happened: Sequence[Happened] | Decide,
        *,
        by: By = "server",
        connection: sa.Connection | None = None,
        kept_values: bytes | None = None,
        **columns: Any,
    ) -> Submission:
        """Append events to a submission's log, all or none.

        Args:
            submission: as it was read; the new events follow its last one.
            happened: kind and payload of each event, in order; or what decides them from `named` and
                `same_rankings`, which holds the board: nothing else comes onto it meanwhile.
            by: who makes it happen.
            connection: a transaction that this belongs to; None for one of its own.
            kept_values: the values per query behind the last event, an .npz.
            **columns: columns of the submission that change with it (`method`, `submitter`, ...).

        Raises:
            ConflictError: someone else has appended since `submission` was read.
            UploadRefusedError: the file that is to be judged again is not kept any more.
        """
        self.refuse_if_read_only()
        if connection is None:
            try:
                with self.database.write() as own:
                    return self.append(
                        submission, happened, by=by, connection=own, kept_values=kept_values, **columns
                    )
            except IntegrityError as error:
                following = submission.events[-1].sequence + 1
                raise ConflictError(
                    f"submission {submission.id}: event {following} has been recorded by another process"
                ) from error
        if callable(happened):
            hold_board(connection, submission.board)
            happened = happened(connection)
        if any(kind == "rerun" for kind, _ in happened):
            refuse_swept(connection, submission.sha256)
        now = datetime.now(UTC)
        state: State = submission.state
        sequence, number = submission.events[-1].sequence, 0
        changed = dict(columns)
        was_erased = submission.last("erased") is not None
        for kind, words in happened:
            sequence += 1
            payload = without_person(dict(words)) if was_erased else words
            number = _insert_event(connection, submission.id, sequence, kind, payload, now, by)
            state = state_after(state, kind, dict(payload))
            if kind == "scored":
                changed["scored_at"] = now
        if "method" in changed:
            changed["name_key"] = name_key(str((changed["method"] or {}).get("name", "")))
        changed["state"] = state
        mine = submissions.c.id == submission.id
        connection.execute(submissions.update().where(mine).values(**changed))
        if kept_values is not None:
            connection.execute(
                values.insert().values(submission_id=submission.id, sequence=sequence, data=kept_values)
            )
        if any(kind in _SHOWN for kind, _ in happened):
            _mark_changed(connection, submission.board, number)
        if any(kind == "erased" for kind, _ in happened):
            erase_texts(connection, submission.id)
            # Names stand on the board, in comparisons, and beside the lists of a dialogue.
            named = views.c.name.contains(submission.id, autoescape=True)
            connection.execute(views.delete().where((views.c.name == f"board:{submission.board}") | named))
        if state in WAITING:
            upsert(connection, jobs, {"submission_id": submission.id})
        else:
            connection.execute(jobs.delete().where(jobs.c.submission_id == submission.id))
        return self._read(connection, [submission.id])[0]

    def submission(self, submission_id: str) -> Submission | None:
        """The submission of that id, or None."""
        if "\0" in submission_id:  # which PostgreSQL takes in no text
            return None
        with self.database.read() as connection:
            found = self._read(connection, [submission_id])
        return found[0] if found else None

    def unfinished(self) -> list[Submission]:
        """Submissions in which something is left to do, first come first."""
        return self._of(submissions.c.state.in_(WAITING))

    def published(self, board: str) -> list[Submission]:
        """What stands on a board, first come first."""
        return self.of_board(board, "published")

    def reread(self, connection: sa.Connection, submission: Submission) -> Submission:
        """A submission as it stands now, within a transaction."""
        return self._read(connection, [submission.id])[0]

    def has_sent(self, board: str, sha256: str, owner: str) -> bool:
        """Whether an owner has sent a file to a board before, whatever became of it."""
        with self.database.read() as connection:
            return self._latest_attempt(connection, board, sha256, owner) is not None

    def of_board(self, board: str, *states: State) -> list[Submission]:
        """A board's submissions, all or those in one of these states, first come first."""
        return self._of(submissions.c.board == board, *([submissions.c.state.in_(states)] if states else []))

    def of_owners(self, owners: Sequence[str]) -> list[Submission]:
        """All submissions of some owners, first come first."""
        return self._of(submissions.c.owner.in_(owners))

    def of_file(self, sha256: str) -> list[Submission]:
        """All submissions of a file, first come first."""
        return self._of(submissions.c.sha256 == sha256)

    def equals(self, submission: Submission) -> list[Submission]:
        """Other entries of the same board that rank the same, first come first."""
        same = submission.canonical
        return self._with_rankings(submission, same, ("published",), None, anybodys=True) if same else []

    def same_rankings(
        self,
        submission: Submission,
        canonical: str,
        connection: sa.Connection | None = None,
        *,
        since: datetime | None = None,
    ) -> Submission | None:
        """An entry of the same owner on the same board with the same rankings, come since then, or None."""
        found = self._with_rankings(submission, canonical, ("published", "private"), connection)
        return next((one for one in found if since is None or one.received_at >= since), None)

    def kept_off(
        self, submission: Submission, canonical: str, connection: sa.Connection | None = None
    ) -> Submission | None:
        """A submission with these rankings that organisers have hidden, or None.

        It is one of the same owner; for who has no account, who may be anybody, it is one of any owner.
        """
        anybodys = submission.edit_hash is not None
        found = self._with_rankings(submission, canonical, ("hidden", "withdrawn"), connection, anybodys)
        return next((one for one in found if one.kept_off), None)

    def _with_rankings(
        self,
        submission: Submission,
        canonical: str,
        states: Sequence[State],
        connection: sa.Connection | None,
        anybodys: bool = False,
    ) -> list[Submission]:
        same_owner = submissions.c.owner == submission.owner, submissions.c.baseline == submission.baseline
        return self._of(
            submissions.c.canonical == canonical,
            submissions.c.board == submission.board,
            submissions.c.state.in_(states),
            submissions.c.id != submission.id,
            *(() if anybodys else same_owner),
            connection=connection,
        )

    def named(self, board: str, name: str, connection: sa.Connection | None = None) -> list[Submission]:
        """What stands on a board under a method's name, or one that looks like it, first come first."""
        here = (submissions.c.board == board, submissions.c.state == "published")
        return self._of(*here, submissions.c.name_key == name_key(name), connection=connection)

    def count_published(self) -> dict[str, int]:
        """How many entries stand on each board that has any."""
        query = (
            sa.select(submissions.c.board, sa.func.count())
            .where(submissions.c.state == "published")
            .group_by(submissions.c.board)
        )
        with self.database.read() as connection:
            return {board: int(number) for board, number in connection.execute(query)}

    def is_empty(self) -> bool:
        """Whether nothing was ever submitted."""
        with self.database.read() as connection:
            return connection.execute(sa.select(submissions.c.id).limit(1)).first() is None

    def condition(self) -> dict[str, Any]:
        """How the queue stands, for a status page.

        Returns:
            `waiting`, `oldest_waiting` and `last_scored` (moments, or None), and `workers`: of each its
            version and when it last showed that it lives.
        """
        waits = submissions.c.state.in_(WAITING)
        query = sa.select(
            sa.func.count().filter(waits),
            sa.func.min(submissions.c.received_at).filter(waits),
            sa.func.max(submissions.c.scored_at),
        )
        with self.database.read() as connection:
            waiting, oldest, scored = connection.execute(query).one()
            alive = connection.execute(sa.select(workers.c.about, workers.c.seen_at).order_by(workers.c.id))
            found = [{"version": str(row.about.get("version", "")), "seen_at": row.seen_at} for row in alive]
        return {"waiting": waiting, "oldest_waiting": oldest, "last_scored": scored, "workers": found}

    def kept_values(self, submission_id: str) -> bytes | None:
        """The values per query behind a submission's scores, an .npz, or None where none are kept."""
        query = (
            sa.select(values.c.data)
            .where(values.c.submission_id == submission_id)
            .order_by(values.c.sequence.desc())
            .limit(1)
        )
        with self.database.read() as connection:
            found: bytes | None = connection.execute(query).scalar_one_or_none()
        return found

    def kept_view(self, name: str, etag: str) -> bytes | None:
        """What was kept under a name, or None where that was made of something else than the tag names."""
        query = sa.select(views.c.body).where(views.c.name == name, views.c.etag == etag)
        with self.database.read() as connection:
            body: bytes | None = connection.execute(query).scalar()
        return body

    def keep_view(self, name: str, etag: str, body: bytes, *, changed: int = 0) -> None:
        """Keep what was made for readers, in the place of what the name had.

        On a full disk nothing is kept, and it is made again for the next reader.

        Args:
            name: of the view; erasing a submission removes those that name it.
            etag: names what it was made of, at most 64 characters.
            body: what is kept.
            changed: the event that it goes back to.
        """
        row = {"changed": changed, "etag": etag, "body": body}
        try:
            with self.database.write() as connection:
                upsert(connection, views, {"name": name, **row}, **row)
        except OperationalError as error:
            log.warning("%s cannot be kept: %s", name, error.orig)

    def changed(self, board: str) -> int:
        """The id of the last event that changed what a board shows; 0 before the first."""
        query = sa.select(board_states.c.changed).where(board_states.c.board == board)
        with self.database.read() as connection:
            return int(connection.execute(query).scalar_one_or_none() or 0)

    def paused(self, board: str) -> str | None:
        """Why a board takes no submissions now, or None where it does."""
        with self.database.read() as connection:
            found: str | None = connection.execute(_PAUSED, {"of_board": board}).scalar_one_or_none()
        return found

    def pause(self, board: str, reason: str | None) -> None:
        """Let a board take no more submissions for a reason, or take them again (None)."""
        self.refuse_if_read_only()
        with self.database.write() as connection:
            _mark_changed(connection, board, None)
            here = board_states.c.board == board
            connection.execute(board_states.update().where(here).values(paused=reason))

    def _of(self, *conditions: Any, connection: sa.Connection | None = None) -> list[Submission]:
        if connection is None:
            with self.database.read() as own:
                return self._of(*conditions, connection=own)
        return self._read(connection, sa.select(submissions.c.id).where(*conditions))

    def _latest_attempt(
        self, connection: sa.Connection, board: str, sha256: str, owner: str
    ) -> Submission | None:
        same = {"of_board": board, "of_file": sha256, "of_owner": owner}
        found = connection.execute(_LATEST, same).scalar_one_or_none()
        return None if found is None else self._read(connection, [found])[0]

    def _read(self, connection: sa.Connection, wanted: Sequence[str] | sa.Select[str]) -> list[Submission]:
        logs: dict[str, list[Event]] = defaultdict(list)
        query = sa.select(events).where(events.c.submission_id.in_(wanted)).order_by(events.c.sequence)
        for row in connection.execute(query):
            logs[row.submission_id].append(Event(row.sequence, row.kind, row.at, row.payload, row.by, row.id))
        shown = [submissions.c[name] for name in Submission.__dataclass_fields__ if name in submissions.c]
        chosen = (
            sa.select(*shown, swept.c.at.label("file_removed_at"))
            .join(swept, swept.c.sha256 == submissions.c.sha256, isouter=True)
            .where(submissions.c.id.in_(wanted))
            .order_by(submissions.c.number)
        )
        return [Submission(**row._mapping, events=tuple(logs[row.id])) for row in connection.execute(chosen)]


def _may_begin_anew(latest: Submission, row: Mapping[str, Any], since: datetime | None) -> bool:
    """Whether a file that was sent before becomes another submission."""
    if since is not None and latest.received_at < since and latest.state != "hidden":
        return True
    # One that was refused ends otherwise only where what came beside it is other than before.
    differs = latest.state != "rejected" or (row["form"], row["submitter"]) != (latest.form, latest.submitter)
    return latest.state in _AGAIN and differs


def _insert_event(
    connection: sa.Connection,
    submission_id: str,
    sequence: int,
    kind: EventKind,
    payload: Mapping[str, Any],
    at: datetime,
    by: By,
) -> int:
    """Append one event.

    Returns:
        Its id.
    """
    row = {"submission_id": submission_id, "sequence": sequence, "kind": kind, "at": at, "by": by}
    done = connection.execute(_EVENT, {**row, "payload": dict(payload)})
    return int((done.inserted_primary_key or (0,))[0])


def _mark_changed(connection: sa.Connection, board: str, event_id: int | None) -> None:
    """Note that what a board shows has changed, so that its views are made anew."""
    row = {"board": board, "changed": event_id or 0}
    upsert(connection, board_states, row, **({} if event_id is None else {"changed": event_id}))
