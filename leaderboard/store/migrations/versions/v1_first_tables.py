"""The tables of the first version, in a file of its own: each step of the migrations is one."""

revision = "v1"
down_revision = None


def upgrade() -> None:
    """Leave the tables as they are."""
