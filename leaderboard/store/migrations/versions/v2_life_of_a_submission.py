"""Owners, jobs, views and values, in a file of its own: each step of the migrations is one.

Submissions and events of the first version move to the new tables.
"""

from alembic import op

from leaderboard.store import schema

revision = "v2"
down_revision = "v1"

_KEPT = "id, board, sha256, attempt, size, file_name, received_at, submitter, form, method, baseline"


def upgrade() -> None:
    """Copy every row; the log keeps its ids, so that the order of arrival stays."""
    connection = op.get_bind()
    for name in ("update", "delete", "replace"):
        op.execute(f"DROP TRIGGER IF EXISTS events_refuse_{name}")
    op.rename_table("events", "events_v1")
    op.rename_table("submissions", "submissions_v1")
    op.execute("DROP INDEX IF EXISTS ix_submissions_board")
    schema.metadata.create_all(connection)
    op.execute(
        f"INSERT INTO submissions ({_KEPT}, number, state, scored_at) SELECT {_KEPT}, "
        "(SELECT min(e.id) FROM events_v1 e WHERE e.submission_id = s.id), "
        "(SELECT e.kind FROM events_v1 e WHERE e.submission_id = s.id ORDER BY e.sequence DESC LIMIT 1), "
        "(SELECT e.at FROM events_v1 e WHERE e.submission_id = s.id AND e.kind = 'scored') "
        "FROM submissions_v1 s"
    )
    op.execute(
        "INSERT INTO events (id, submission_id, sequence, kind, at, payload) "
        "SELECT id, submission_id, sequence, kind, at, payload FROM events_v1 ORDER BY id"
    )
    op.execute(
        "INSERT INTO jobs (submission_id) SELECT id FROM submissions WHERE state IN "
        "('received', 'validated', 'scored')"
    )
    for name in ("events_v1", "submissions_v1"):
        op.drop_table(name)
    op.execute("UPDATE about SET value = '2' WHERE name = 'schema_version'")
