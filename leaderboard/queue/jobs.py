"""The queue: which submissions are to be judged, by whom, and how often that was begun.

A worker takes a job by writing its name on it and counting the attempt, before it reads the file. It shows
that it lives by a beat that it counts up; another worker, for which that stands still during `BEATS_A_LEASE`
beats of its own, takes the job back. No clock is read for that. A worker's death says nothing about the file
in its hands: only crashes of the file's own judge are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from leaderboard.errors import ConflictError
from leaderboard.store import Decide, Happened, Store
from leaderboard.store.database import hold_board, upsert
from leaderboard.store.schema import jobs, submissions, turns, workers
from leaderboard.store.submission import Submission

CRASHES = 2
"""After so many crashes of its judge a submission is judged no more, until an organiser says so."""
LEASE_SECONDS = 15.0
"""A worker whose beat stands still for so long is taken to be dead."""
BEATS_A_LEASE = 5
"""Beats that a worker makes in that time."""
_DELAYS = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds until a job is tried again that failed for a passing reason."""


@dataclass(frozen=True)
class Job:
    """A submission that a worker has taken.

    Args:
        submission: as it stood then.
        turn: the count of takings of this job; it tells this taking from later ones.
        crashes: how often its judge ended without an answer.
    """

    submission: Submission
    turn: int
    crashes: int


class Jobs:
    """The jobs of a store, as one worker sees them.

    Args:
        store: where they are.
        worker: this worker's name, unlike any other's.
    """

    def __init__(self, store: Store, worker: str) -> None:
        """Remember the store; nothing is written yet."""
        self._store = store
        self._database = store.database
        self.worker = worker
        self._seen: dict[str, tuple[int, int]] = {}

    def beat(self, about: Mapping[str, Any]) -> None:
        """Show that this worker lives.

        Args:
            about: host, process and version, for the status page.
        """
        now = datetime.now(UTC)
        first = {"id": self.worker, "beat": 0, "seen_at": now, "about": dict(about)}
        with self._database.write() as connection:
            upsert(connection, workers, first, beat=workers.c.beat + 1, seen_at=now)

    def give_back(self) -> None:
        """Give back what this worker holds; that is not a crash."""
        mine = jobs.c.worker == self.worker
        with self._database.read() as connection:
            if connection.execute(sa.select(jobs.c.submission_id).where(mine)).first() is None:
                return
        with self._database.write() as connection:
            connection.execute(jobs.update().where(mine).values(worker=None))

    def leave(self) -> None:
        """Give back what this worker holds, and be a worker no more."""
        self.give_back()
        self._seen.clear()
        with self._database.write() as connection:
            connection.execute(workers.delete().where(workers.c.id == self.worker))

    def take(self, submission_id: str | None = None) -> Job | None:
        """Take the next job, and count the attempt.

        Owners take turns: who was served least lately comes first, and of one owner's what came first.

        Args:
            submission_id: take this one or none.

        Returns:
            The job, or None where nothing can be taken now.
        """
        now = datetime.now(UTC)
        # A clock that was set back must not keep a job waiting for longer than the longest delay.
        horizon = now + timedelta(seconds=_DELAYS[-1])
        due = sa.or_(jobs.c.not_before.is_(None), jobs.c.not_before <= now, jobs.c.not_before > horizon)
        free = (jobs.c.worker.is_(None), due)
        wanted = () if submission_id is None else (jobs.c.submission_id == submission_id,)
        with self._database.read() as connection:
            # Most of the time nothing waits: that is found out without the lock of writers.
            if (
                connection.execute(sa.select(jobs.c.submission_id).where(*free, *wanted).limit(1)).first()
                is None
            ):
                return None
        with self._database.write() as connection:
            query = (
                sa.select(jobs.c.submission_id, jobs.c.turn, jobs.c.crashes, submissions.c.owner)
                .join(submissions, submissions.c.id == jobs.c.submission_id)
                .join(turns, turns.c.owner == submissions.c.owner, isouter=True)
                .where(*free, *wanted)
                .order_by(sa.func.coalesce(turns.c.last, 0), submissions.c.number)
                .limit(1)
                .with_for_update(of=jobs, skip_locked=True)
            )
            row = connection.execute(query).first()
            if row is None:
                return None
            taken = {
                "worker": self.worker,
                "turn": row.turn + 1,
                "begun": jobs.c.begun + 1,
                "not_before": None,
            }
            this = jobs.c.submission_id == row.submission_id
            connection.execute(jobs.update().where(this).values(**taken))
            _serve(connection, row.owner)
            submission = self._store._read(connection, [row.submission_id])[0]
        return Job(submission, row.turn + 1, row.crashes)

    def finish(
        self,
        job: Job,
        happened: list[Happened] | Decide,
        *,
        kept_values: bytes | None = None,
        **columns: Any,
    ) -> Submission:
        """Record how a job ended; it leaves the queue in the same transaction.

        Raises:
            ConflictError: the job was taken from this worker meanwhile.
        """
        with self._database.write() as connection:
            if callable(happened):
                hold_board(connection, job.submission.board)
            self._own(connection, job)
            return self._store.append(
                job.submission, happened, connection=connection, kept_values=kept_values, **columns
            )

    def delay(self, job: Job) -> float:
        """Put a job back for a passing reason.

        Returns:
            Seconds until it is tried again.

        Raises:
            ConflictError: the job was taken from this worker meanwhile.
        """
        with self._database.write() as connection:
            return _put_off(connection, job.submission.id, self._own(connection, job))

    def crash(self, job: Job, message: str) -> Submission | None:
        """Record that the judge ended without an answer.

        Args:
            job: what was judged.
            message: what the submitter reads where this crash was the last that is allowed.

        Returns:
            The submission where that was its end, else None: it will be tried once more.

        Raises:
            ConflictError: the job was taken from this worker meanwhile.
        """
        with self._database.write() as connection:
            self._own(connection, job)
            this = jobs.c.submission_id == job.submission.id
            crashes = int(connection.execute(sa.select(jobs.c.crashes).where(this)).scalar_one()) + 1
            if crashes < CRASHES:
                connection.execute(jobs.update().where(this).values(worker=None, crashes=crashes))
                return None
            ended: list[Happened] = [("failed", {"message": message, "crashes": crashes})]
            return self._store.append(job.submission, ended, connection=connection)

    def take_back(self) -> list[str]:
        """Take back the jobs of workers that have stopped beating; called once a beat.

        Their owners' turn comes again. A job that is taken back again and again waits longer each time, as
        one that is put off: what takes its workers down with it must not be all that they do.

        Returns:
            The ids of their submissions.
        """
        still = self._still()
        if not still:
            return []
        with self._database.write() as connection:
            columns = jobs.c.submission_id, jobs.c.delays, submissions.c.owner
            held = sa.select(*columns).join(submissions).where(jobs.c.worker.in_(still))
            back = connection.execute(held.with_for_update(of=jobs)).all()
            for row in back:
                _put_off(connection, row.submission_id, row.delays)
            connection.execute(
                turns.update().where(turns.c.owner.in_([row.owner for row in back])).values(last=0)
            )
            connection.execute(workers.delete().where(workers.c.id.in_(still)))
        return [row.submission_id for row in back]

    def _still(self) -> list[str]:
        """The other workers whose beat has been the same for the looks of a lease; each call is a look."""
        with self._database.read() as connection:
            held = sa.select(jobs.c.worker).where(jobs.c.worker.is_not(None))
            beats = dict.fromkeys(connection.scalars(held), -1)
            beats |= {row.id: row.beat for row in connection.execute(sa.select(workers.c.id, workers.c.beat))}
        beats.pop(self.worker, None)
        seen = {name: self._seen.get(name, (beat, 0)) for name, beat in beats.items()}
        self._seen = {
            name: (beats[name], looks + 1 if beat == beats[name] else 1)
            for name, (beat, looks) in seen.items()
        }
        return [name for name, (_, looks) in self._seen.items() if looks > BEATS_A_LEASE]

    def _own(self, connection: sa.Connection, job: Job) -> int:
        """Refuse where the job is not this worker's any more.

        Returns:
            How often the job was delayed.
        """
        this = jobs.c.submission_id == job.submission.id
        query = sa.select(jobs.c.worker, jobs.c.turn, jobs.c.delays).where(this).with_for_update()
        row = connection.execute(query).first()
        if row is None or (row.worker, row.turn) != (self.worker, job.turn):
            raise ConflictError(f"submission {job.submission.id}: another worker has taken it over")
        return int(row.delays)


def _put_off(connection: sa.Connection, submission_id: str, delays: int) -> float:
    """Let nobody take a job for the seconds that are returned: more with each time that it was put off."""
    seconds = _DELAYS[min(delays, len(_DELAYS) - 1)]
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    this = jobs.c.submission_id == submission_id
    connection.execute(jobs.update().where(this).values(worker=None, not_before=later, delays=delays + 1))
    return seconds


def _serve(connection: sa.Connection, owner: str) -> None:
    """Note that an owner was served now, after all others."""
    newest = int(connection.execute(sa.select(sa.func.max(turns.c.last))).scalar_one_or_none() or 0)
    upsert(connection, turns, {"owner": owner, "last": newest + 1}, last=newest + 1)
