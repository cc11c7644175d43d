"""Erased texts leave the log too, in a file of its own: each step of the migrations is one."""

from alembic import op

from leaderboard.store import schema

revision = "v4"
down_revision = "v3"


def upgrade() -> None:
    """Let the texts of erased submissions be replaced, and replace those that were erased before."""
    from leaderboard.store import erase_texts

    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        op.execute("DROP TRIGGER IF EXISTS events_refuse_update")
        op.execute(schema.REFUSE_UPDATE)
    else:
        op.execute(schema.FUNCTION)
    erase_texts(connection)
    op.execute("UPDATE about SET value = '4' WHERE name = 'schema_version'")
