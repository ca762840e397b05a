"""Adds the state of orders, which may be paid later, cancelled or expired, and the kind of transactions."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NEW_OF_ORDERS = ("pay_until_ms", "paid_at_ms", "ended_at_ms")


def upgrade() -> None:
    """Adds the columns. Existing orders become PLACED, existing transactions `order`. No table is rewritten."""
    op.add_column("orders", sa.Column("state", sa.String(16), nullable=False, server_default="PLACED"))
    for name in _NEW_OF_ORDERS:
        op.add_column("orders", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("orders", sa.Column("ended_because", sa.String(200), nullable=True))
    op.add_column("transactions", sa.Column("kind", sa.String(16), nullable=False, server_default="order"))


def downgrade() -> None:
    """Drops the columns. Fails without changes if an order has a state that version 0002 does not have."""
    known = "state = 'PLACED' AND pay_until_ms IS NULL"
    others = op.get_bind().scalar(sa.text(f"SELECT count(*) FROM orders WHERE NOT ({known})"))
    if others:
        raise ValueError(f"cannot downgrade to {down_revision}: {others} orders are paid later, cancelled or expired")
    op.drop_column("transactions", "kind")
    for name in ("ended_because", *reversed(_NEW_OF_ORDERS), "state"):
        op.drop_column("orders", name)
