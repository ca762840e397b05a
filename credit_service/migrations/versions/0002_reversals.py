"""Adds the kind of entries, `credit` or `reversal`. The unique key becomes the order and the kind, instead of only the order."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KEY = "uq_credits_order_id_kind"
_KEY_BEFORE = "credits_order_id_key"
_COLUMNS = "id, order_id, customer, points, amount_cents, message_id, transaction_id, created_at_ms"


def upgrade() -> None:
    """Adds the column and replaces the unique key. Existing entries become credits."""
    kind = sa.Column("kind", sa.String(16), nullable=False, server_default="credit")
    if op.get_bind().dialect.name == "sqlite":
        _make_credits_anew(kind, sa.UniqueConstraint("order_id", "kind", name=_KEY))
        return
    op.add_column("credits", kind)
    # The index is built first, while the ledger can still be read. So the later statements lock the table only briefly.
    op.create_index(_KEY, "credits", ["order_id", "kind"], unique=True)
    op.execute(f"ALTER TABLE credits ADD CONSTRAINT {_KEY} UNIQUE USING INDEX {_KEY}")
    op.drop_constraint(_KEY_BEFORE, "credits")


def downgrade() -> None:
    """Restores the old key. Fails without changes if there are reversals, which version 0001 would read as credits."""
    reversals = op.get_bind().scalar(sa.text("SELECT count(*) FROM credits WHERE kind <> 'credit'"))
    if reversals:
        raise ValueError(
            f"cannot downgrade to {down_revision}: that version would read the ledger's {reversals} reversals as credits"
        )
    if op.get_bind().dialect.name == "sqlite":
        _make_credits_anew(sa.UniqueConstraint("order_id"))
        return
    op.create_unique_constraint(_KEY_BEFORE, "credits", ["order_id"])
    op.drop_constraint(_KEY, "credits")
    op.drop_column("credits", "kind")


def _make_credits_anew(*new: sa.Column[str] | sa.UniqueConstraint) -> None:
    """Copies the rows, with their ids, into a new table, because SQLite cannot drop a constraint."""
    op.create_table(
        "credits_anew",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("order_id", sa.String(36), nullable=False),
        sa.Column("customer", sa.String(100), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("amount_cents", sa.BigInteger(), nullable=False),
        sa.Column("message_id", sa.String(64), nullable=False),
        sa.Column("transaction_id", sa.String(64), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        *new,
    )
    op.execute(f"INSERT INTO credits_anew ({_COLUMNS}) SELECT {_COLUMNS} FROM credits")
    op.drop_table("credits")
    op.rename_table("credits_anew", "credits")
    op.create_index("ix_credits_customer", "credits", ["customer"])
