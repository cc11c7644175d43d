"""The store's tables, and the triggers that make its event log append-only.

Nothing personal belongs into the log: who submitted and what they wrote stands in `submissions`, where it can
be erased, and the log keeps what happened.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    DDL,
    JSON,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    event,
)
from sqlalchemy.engine import Dialect

SCHEMA_VERSION = 1
"""+1 whenever a table changes; a store of a newer version is refused."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no time zone, so it is put back on reading."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store in UTC without a zone."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back in UTC with its zone."""
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()

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
    Column("board", String(128), nullable=False, index=True),
    Column("sha256", String(64), nullable=False),
    # A file that was rejected or failed may be sent again; one that stands on the board may not.
    Column("attempt", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("file_name", String(255), nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("submitter", String(200), nullable=False),
    Column("form", JSON, nullable=False),
    Column("method", JSON),
    Column("baseline", Boolean, nullable=False),
    UniqueConstraint("board", "sha256", "attempt"),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("submission_id", String(32), ForeignKey("submissions.id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("payload", JSON, nullable=False),
    UniqueConstraint("submission_id", "sequence"),
)

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END"
# INSERT OR REPLACE deletes a row without asking the trigger for deletions.
_TAKEN = (
    "EXISTS (SELECT 1 FROM events WHERE id = NEW.id OR "
    "(submission_id = NEW.submission_id AND sequence = NEW.sequence))"
)
_TRIGGERS = (
    f"CREATE TRIGGER IF NOT EXISTS events_refuse_update BEFORE UPDATE ON events {_REFUSE}",
    f"CREATE TRIGGER IF NOT EXISTS events_refuse_delete BEFORE DELETE ON events {_REFUSE}",
    f"CREATE TRIGGER IF NOT EXISTS events_refuse_replace BEFORE INSERT ON events WHEN {_TAKEN} {_REFUSE}",
)
for _statement in _TRIGGERS:
    _trigger: Any = DDL(_statement)  # type: ignore[no-untyped-call]
    event.listen(events, "after_create", _trigger.execute_if(dialect="sqlite"))
