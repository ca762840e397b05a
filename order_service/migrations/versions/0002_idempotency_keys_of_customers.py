"""Makes idempotency keys unique for each customer, instead of for all."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CUSTOMERS_KEY = "uq_orders_customer_idempotency_key"
_EVERYBODYS_KEY = "orders_idempotency_key_key"


def upgrade() -> None:
    """Loses nothing: keys unique for all are unique for each customer."""
    if op.get_bind().dialect.name == "sqlite":
        _make_orders_anew(sa.UniqueConstraint("customer", "idempotency_key", name=_CUSTOMERS_KEY))
        return
    # The index is built first, while orders can still be read; the statement that locks the table takes no time.
    op.create_index(_CUSTOMERS_KEY, "orders", ["customer", "idempotency_key"], unique=True)
    op.execute(f"ALTER TABLE orders ADD CONSTRAINT {_CUSTOMERS_KEY} UNIQUE USING INDEX {_CUSTOMERS_KEY}")
    op.drop_constraint(_EVERYBODYS_KEY, "orders")


def downgrade() -> None:
    """Fails without changes if two customers have used one key."""
    if op.get_bind().dialect.name == "sqlite":
        _make_orders_anew(sa.UniqueConstraint("idempotency_key"))
        return
    op.create_unique_constraint(_EVERYBODYS_KEY, "orders", ["idempotency_key"])
    op.drop_constraint(_CUSTOMERS_KEY, "orders")


def _make_orders_anew(key: sa.UniqueConstraint) -> None:
    """Copies the rows into a new table, with their ids: SQLite cannot drop a constraint."""
    op.create_table(
        "orders_anew",
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
    op.execute(f"INSERT INTO orders_anew ({columns}) SELECT {columns} FROM orders")
    op.drop_table("orders")
    op.rename_table("orders_anew", "orders")
    op.create_index("ix_orders_customer", "orders", ["customer"])
