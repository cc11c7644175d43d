"""Who has signed in, in a file of its own: each step of the migrations is one."""

from alembic import op

from leaderboard.store import schema

revision = "v5"
down_revision = "v4"


def upgrade() -> None:
    """Make the table, unless the first step has made it already with all others."""
    schema.logins.create(op.get_bind(), checkfirst=True)
    op.execute("UPDATE about SET value = '5' WHERE name = 'schema_version'")
