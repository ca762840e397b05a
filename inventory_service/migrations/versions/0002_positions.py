"""Adds the consumer group's positions, which show whether the inventory database was reset to an older state."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


_ON_THEIR_WAY_MS = 3_600_000


def upgrade() -> None:
    """Creates the tables.

    Messages are redelivered once, starting an hour before the newest shipment, because some may be unprocessed.
    """
    op.create_table(
        "consumed_positions",
        sa.Column("topic", sa.String(255), primary_key=True),
        sa.Column("broker_name", sa.String(255), primary_key=True),
        sa.Column("queue_id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
    )
    origin = op.create_table(
        "positions_origin",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("known_until_ms", sa.BigInteger(), nullable=True),
    )
    newest_ms = op.get_bind().scalar(sa.text("SELECT max(created_at_ms) FROM shipments"))
    known_until_ms = None if newest_ms is None else max(0, newest_ms - _ON_THEIR_WAY_MS)
    op.bulk_insert(origin, [{"id": 1, "known_until_ms": known_until_ms}])


def downgrade() -> None:
    """Drops the tables. The brokers still store the group's offsets."""
    op.drop_table("positions_origin")
    op.drop_table("consumed_positions")
