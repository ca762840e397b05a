"""The tables of the credit database. The adapters and the migrations use them; `pipelines` reads them from outside."""

from typing import Final

from sqlalchemy import BigInteger, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from order_messages.states import EntryKind
from rocketmq_broker.databases.sqlalchemy import add_inbox
from service_runtime.database.columns import ROW_ID
from service_runtime.messaging.positions import PositionTables
from service_runtime.text import rfc3339

MIGRATIONS: Final = "credit_service:migrations"
"""The location of the migrations, for Alembic."""


class CreditDatabase(SQLModel, registry=registry()):
    """Base class of the tables. It separates them from the tables of other services in the same process."""


class CreditRow(CreditDatabase, table=True):
    """An entry of the ledger, which is append-only. An order has at most one entry of each kind, `credit` and `reversal`."""

    __tablename__ = "credits"
    __table_args__ = (UniqueConstraint("order_id", "kind", name="uq_credits_order_id_kind"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    order_id: str = Field(max_length=36)
    kind: str = Field(default=EntryKind.CREDIT.value, max_length=16, sa_column_kwargs={"server_default": EntryKind.CREDIT.value})
    customer: str = Field(max_length=100, index=True)
    points: int = Field(sa_type=BigInteger)
    """The points of the entry, negative for a reversal."""
    amount_cents: int = Field(sa_type=BigInteger)
    """The order's total in cents, never negative."""
    message_id: str = Field(max_length=64)
    """The id of the message from which the entry was written."""
    transaction_id: str | None = Field(default=None, max_length=64)
    created_at_ms: int = Field(sa_type=BigInteger)

    @property
    def created_at(self) -> str:
        """The time of the entry, in RFC 3339 format."""
        return rfc3339(self.created_at_ms)


class BalanceRow(CreditDatabase, table=True):
    """The sum of the points of a customer's entries."""

    __tablename__ = "balances"

    customer: str = Field(primary_key=True, max_length=100)
    points: int = Field(sa_type=BigInteger)


POSITIONS: Final = PositionTables.of(CreditDatabase.metadata)
"""The tables of the consumer group's positions, which are the offsets before which all messages have been processed."""

add_inbox(CreditDatabase.metadata)
