"""Creates the tables for orders, their items, and the states of their transactions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_RowId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates the three tables."""
    op.create_table(
        "orders",
        sa.Column("id", _RowId, primary_key=True, autoincrement=True),
        sa.Column("order_id", sa.String(36), nullable=False, unique=True),
        sa.Column("customer", sa.String(100), nullable=False, index=True),
        sa.Column("total_cents", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=True, unique=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "order_items",
        sa.Column("id", _RowId, primary_key=True, autoincrement=True),
        sa.Column("order_id", sa.String(36), sa.ForeignKey("orders.order_id"), nullable=False, index=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("price_cents", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "transactions",
        sa.Column("transaction_id", sa.String(64), primary_key=True),
        sa.Column("order_id", sa.String(36), nullable=True, index=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Drops the three tables."""
    op.drop_table("transactions")
    op.drop_table("order_items")
    op.drop_table("orders")
