"""Adds the inbox, in which messages wait until they are processed."""

import sqlalchemy as sa
from alembic import op

from rocketmq_broker.databases.sqlalchemy import create_inbox, drop_inbox

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Creates the table. PostgreSQL vacuums it often, because each message becomes a dead row."""
    create_inbox(op)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE rocketmq_inbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)")


def downgrade() -> None:
    """Drops the table. Fails without changes if messages wait in it, because the broker does not deliver them again."""
    waiting = op.get_bind().scalar(sa.text("SELECT count(*) FROM rocketmq_inbox WHERE status <> 'DISMISSED'"))
    if waiting:
        raise ValueError(f"cannot downgrade to {down_revision}: the inbox has {waiting} messages; let the service process them")
    drop_inbox(op)
