"""Adds the database's id, and the tables that reveal an old copy: `epochs` and `adoptions`."""

import sqlalchemy as sa
from alembic import op

from rocketmq_broker.world import current_world

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates three tables and a random id, which later copies of the database share."""
    identity = op.create_table(
        "database_identity",
        sa.Column("database_id", sa.String(32), primary_key=True),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "epochs",
        sa.Column("epoch_id", sa.String(32), primary_key=True),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("renewed_at_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "adoptions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("adopted_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
    )
    world = current_world()
    op.bulk_insert(identity, [{"database_id": world.new_uuid().hex, "made_at_ms": world.wall_ms()}])


def downgrade() -> None:
    """Drops the three tables. Version 0003 ignores the witnesses (database states) in half messages."""
    for name in ("adoptions", "epochs", "database_identity"):
        op.drop_table(name)
