"""Names that look alike are compared as one, in a file of its own: each step of the migrations is one."""

from alembic import op

revision = "v6"
down_revision = "v5"


def upgrade() -> None:
    """Write anew how methods' names are compared."""
    from leaderboard.store import name_methods

    name_methods(op.get_bind())
    op.execute("UPDATE about SET value = '6' WHERE name = 'schema_version'")
