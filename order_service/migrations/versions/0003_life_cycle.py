"""Orders have a state, and may be paid later, cancelled or expired; transactions have a kind, `order` or `cancellation`."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NEW_OF_ORDERS = ("pay_until_ms", "paid_at_ms", "ended_at_ms")


def upgrade() -> None:
    """Loses nothing: each order so far is PLACED, and each transaction that of an order. No table is written anew."""
    op.add_column("orders", sa.Column("state", sa.String(16), nullable=False, server_default="PLACED"))
    for name in _NEW_OF_ORDERS:
        op.add_column("orders", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("orders", sa.Column("ended_because", sa.String(200), nullable=True))
    op.add_column("transactions", sa.Column("kind", sa.String(16), nullable=False, server_default="order"))


def downgrade() -> None:
    """Fails, and changes nothing, where an order has a life that version 0002 does not know."""
    known = "state = 'PLACED' AND pay_until_ms IS NULL"
    others = op.get_bind().scalar(sa.text(f"SELECT count(*) FROM orders WHERE NOT ({known})"))
    if others:
        raise ValueError(f"{others} orders are paid later, cancelled or expired, which revision {down_revision} does not know")
    op.drop_column("transactions", "kind")
    for name in ("ended_because", *reversed(_NEW_OF_ORDERS), "state"):
        op.drop_column("orders", name)
