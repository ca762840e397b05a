"""Makes idempotency keys unique for each customer instead of globally."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CUSTOMER_KEY = "uq_orders_customer_idempotency_key"
_GLOBAL_KEY = "orders_idempotency_key_key"


def upgrade() -> None:
    """Replaces the unique constraint. Cannot fail, because keys that are unique globally are also unique for each customer."""
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_orders(sa.UniqueConstraint("customer", "idempotency_key", name=_CUSTOMER_KEY))
        return
    # The index is built first, while orders can still be read. So the later statements lock the table only briefly.
    op.create_index(_CUSTOMER_KEY, "orders", ["customer", "idempotency_key"], unique=True)
    op.execute(f"ALTER TABLE orders ADD CONSTRAINT {_CUSTOMER_KEY} UNIQUE USING INDEX {_CUSTOMER_KEY}")
    op.drop_constraint(_GLOBAL_KEY, "orders")


def downgrade() -> None:
    """Restores the global constraint. Fails without changes if two customers have used the same key."""
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_orders(sa.UniqueConstraint("idempotency_key"))
        return
    op.create_unique_constraint(_GLOBAL_KEY, "orders", ["idempotency_key"])
    op.drop_constraint(_CUSTOMER_KEY, "orders")


def _rebuild_orders(key: sa.UniqueConstraint) -> None:
    """Copies the rows, with their ids, into a new table, because SQLite cannot drop a constraint."""
    op.create_table(
        "orders_new",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("order_id", sa.String(36), nullable=False, unique=True),
        sa.Column("customer", sa.String(100), nullable=False),
        sa.Column("total_cents", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        key,
    )
    columns = "id, order_id, customer, total_cents, currency, idempotency_key, created_at_ms"
    op.execute(f"INSERT INTO orders_new ({columns}) SELECT {columns} FROM orders")
    op.drop_table("orders")
    op.rename_table("orders_new", "orders")
    op.create_index("ix_orders_customer", "orders", ["customer"])
