"""Creates the tables for the stock, the shipments, and the quantities taken from stock for each shipment."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the three tables."""
    op.create_table(
        "stock",
        sa.Column("article", sa.String(200), primary_key=True),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("available >= 0", name="ck_stock_available"),
    )
    op.create_table(
        "shipments",
        sa.Column("order_id", sa.String(36), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("missing", sa.String(200), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "shipment_lines",
        sa.Column("order_id", sa.String(36), sa.ForeignKey("shipments.order_id"), primary_key=True),
        sa.Column("article", sa.String(200), primary_key=True),
        sa.Column("quantity", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Drops the three tables."""
    op.drop_table("shipment_lines")
    op.drop_table("shipments")
    op.drop_table("stock")
