"""The store's tables, and the triggers that make its event log append-only.

Who submitted and what they wrote stands in `submissions`; the log keeps what happened. What it repeats of
their words (a name before a correction, findings that quote a file) goes when the submission is erased: only
then, and only in its payload, may an event be changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    DDL,
    JSON,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    event,
)
from sqlalchemy.engine import Dialect

HEAD = "v6"
"""The version of these tables; a store that names one we do not know is refused."""
EARLIER = ("v4", "v5")
"""Versions whose tables are brought up: 0.1.0 has v4, and what v5 and v6 have beside is made again."""

UNREADABLE = datetime(1970, 1, 1, tzinfo=UTC)
"""What stands for a moment that a damaged row holds: it must not take the rows beside it along."""

log = logging.getLogger("leaderboard.store")


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no time zone, so it is put back on reading.

    SQLite keeps it as text, which damage can make unreadable; it is read as `UNREADABLE` then.
    """

    impl = DateTime
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Read what the database holds."""
        read = super().result_processor(dialect, coltype)
        if read is None:
            return None

        def readable(value: Any) -> Any:
            try:
                return read(value)
            except (TypeError, ValueError):
                log.error("a date in the database cannot be read; it is read as %s", UNREADABLE)
                return UNREADABLE

        return readable

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store in UTC without a zone."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back in UTC with its zone."""
        return None if value is None else value.replace(tzinfo=UTC)


# Not JSONB: it would bring the metrics of a report into another order.
Json = JSON(none_as_null=True)

metadata = MetaData()

# Facts about the store itself.
about = Table(
    "about",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", String(32), primary_key=True),
    # The id of its first event: what came earlier has a smaller one, whatever the clock says.
    Column("number", Integer, unique=True),
    Column("board", String(128), nullable=False, index=True),
    Column("sha256", String(64), nullable=False, index=True),
    # The hash of what the file ranks, however it is written; known after validation.
    Column("canonical", String(64), index=True),
    # A file that was rejected or failed may be sent again; one that stands on the board may not.
    Column("attempt", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("file_name", String(255), nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("scored_at", UtcDateTime),
    Column("owner", String(128), nullable=False, server_default="", index=True),
    Column("edit_hash", String(64)),
    Column("submitter", String(200), nullable=False),
    Column("form", Json, nullable=False),
    Column("method", Json),
    # The method's name as it is compared: letters that look alike are one.
    Column("name_key", String(400), index=True),
    Column("baseline", Boolean, nullable=False),
    # Whether it goes onto the board when it is scored, or waits for its owner.
    Column("publish", Boolean, nullable=False, server_default="1"),
    # What follows from its events, kept for queries; written with them in one transaction.
    Column("state", String(16), nullable=False, server_default="received", index=True),
    UniqueConstraint("board", "sha256", "owner", "attempt", name="one_attempt"),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("submission_id", String(32), ForeignKey("submissions.id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("by", String(16), nullable=False, server_default="server"),
    Column("payload", Json, nullable=False),
    UniqueConstraint("submission_id", "sequence"),
    sqlite_autoincrement=True,
)

jobs = Table(
    "jobs",
    metadata,
    Column("submission_id", String(32), ForeignKey("submissions.id"), primary_key=True),
    # Begun so often; written before the file is read, so that a file that kills its judge is counted.
    Column("begun", Integer, nullable=False, server_default="0"),
    # Ended so often without an answer.
    Column("crashes", Integer, nullable=False, server_default="0"),
    Column("delays", Integer, nullable=False, server_default="0"),
    Column("not_before", UtcDateTime),
    # Who judges it now, and how often it was taken: a worker that was thought dead cannot finish it.
    Column("worker", String(64), index=True),
    Column("turn", Integer, nullable=False, server_default="0"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("beat", Integer, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("about", Json, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("owner", String(128), primary_key=True),
    Column("last", Integer, nullable=False, index=True),
)

values = Table(
    "result_values",
    metadata,
    Column("submission_id", String(32), ForeignKey("submissions.id"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    # An .npz: by metric one value per query.
    Column("data", LargeBinary, nullable=False),
)

board_states = Table(
    "board_states",
    metadata,
    Column("board", String(128), primary_key=True),
    Column("paused", String(300)),
    # The id of the last event that changed what the board shows.
    Column("changed", Integer, nullable=False, server_default="0"),
)

views = Table(
    "views",
    metadata,
    Column("name", String(160), primary_key=True),
    Column("changed", Integer, nullable=False),
    Column("etag", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("owner", String(128), nullable=False, index=True),
    Column("role", String(16), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
)

members = Table(
    "members",
    metadata,
    Column("team", String(128), primary_key=True),
    Column("owner", String(128), primary_key=True),
)

logins = Table(
    "logins",
    metadata,
    # Of the key that the browser has.
    Column("hash", String(64), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("name", String(200), nullable=False),
    Column("teams", Json, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

arrivals = Table(
    "arrivals",
    metadata,
    # A keyed hash of the address: the address itself is not kept.
    Column("source", String(64), primary_key=True),
    Column("hour", String(13), primary_key=True),
    Column("uploads", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),
)

swept = Table(
    "swept_files",
    metadata,
    Column("sha256", String(64), primary_key=True),
    # When the file was removed; empty while it is being removed.
    Column("at", UtcDateTime),
)

Index("events_of_a_submission", events.c.submission_id, events.c.kind)

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END"
# INSERT OR REPLACE deletes a row without asking the trigger for deletions.
_TAKEN = (
    "EXISTS (SELECT 1 FROM events WHERE id = NEW.id OR "
    "(submission_id = NEW.submission_id AND sequence = NEW.sequence))"
)
_FIXED = ("id", "submission_id", "sequence", "kind", "at", "by")
_ERASED = (
    " AND ".join(f'NEW."{name}" = OLD."{name}"' for name in _FIXED)
    + " AND EXISTS (SELECT 1 FROM events WHERE submission_id = OLD.submission_id AND kind = 'erased')"
)
"""An event's texts may be replaced once its submission is erased; all else of it stays."""
_SQLITE = (
    f"CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events WHEN NOT ({_ERASED}) {_REFUSE}",
    f"CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events {_REFUSE}",
    f"CREATE TRIGGER events_refuse_replace BEFORE INSERT ON events WHEN {_TAKEN} {_REFUSE}",
)
_CALLS = "EXECUTE FUNCTION events_refuse()"
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"IF TG_OP = 'UPDATE' THEN IF {_ERASED} THEN RETURN NEW; END IF; END IF; "
    "RAISE EXCEPTION 'the event log is append-only'; END $$"
)
_POSTGRESQL = (
    _FUNCTION,
    f"CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE ON events FOR EACH ROW {_CALLS}",
    f"CREATE TRIGGER events_refuse_truncate BEFORE TRUNCATE ON events FOR EACH STATEMENT {_CALLS}",
)
for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRESQL)):
    for _statement in _statements:
        _trigger: Any = DDL(_statement.replace("%", "%%"))  # type: ignore[no-untyped-call]
        event.listen(events, "after_create", _trigger.execute_if(dialect=_dialect))
