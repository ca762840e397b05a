"""Creates the tables for the ledger of credits and the balances."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates both tables."""
    op.create_table(
        "credits",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("order_id", sa.String(36), nullable=False, unique=True),
        sa.Column("customer", sa.String(100), nullable=False, index=True),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("amount_cents", sa.BigInteger(), nullable=False),
        sa.Column("message_id", sa.String(64), nullable=False),
        sa.Column("transaction_id", sa.String(64), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "balances",
        sa.Column("customer", sa.String(100), primary_key=True),
        sa.Column("points", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    """Drops both tables."""
    op.drop_table("balances")
    op.drop_table("credits")
