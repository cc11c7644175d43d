"""Which refused files were removed, in a file of its own: each step of the migrations is one."""

from alembic import op

from leaderboard.store import schema

revision = "v3"
down_revision = "v2"


def upgrade() -> None:
    """Make the table, unless the step before has made it already with all others."""
    schema.swept.create(op.get_bind(), checkfirst=True)
    op.execute("UPDATE about SET value = '3' WHERE name = 'schema_version'")
