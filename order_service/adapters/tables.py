"""The tables of the order database. The adapters and the migrations use them; `pipelines` reads them from outside."""

from typing import Final

from sqlalchemy import BigInteger, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from order_messages.states import OrderState, TransactionKind
from service_runtime.database.columns import ROW_ID

MIGRATIONS: Final = "order_service:migrations"
"""The location of the migrations, for Alembic."""


class OrderDatabase(SQLModel, registry=registry()):
    """Base class of the tables. It separates them from the tables of other services in the same process."""


class OrderRow(OrderDatabase, table=True):
    """An order. Idempotency keys are unique for each customer."""

    __tablename__ = "orders"
    __table_args__ = (UniqueConstraint("customer", "idempotency_key", name="uq_orders_customer_idempotency_key"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    order_id: str = Field(max_length=36, unique=True)
    customer: str = Field(max_length=100, index=True)
    total_cents: int = Field(sa_type=BigInteger)
    currency: str = Field(max_length=3)
    idempotency_key: str | None = Field(default=None, max_length=255)
    created_at_ms: int = Field(sa_type=BigInteger)
    state: str = Field(max_length=16, sa_column_kwargs={"server_default": OrderState.PLACED.value})
    pay_until_ms: int | None = Field(default=None, sa_type=BigInteger)
    paid_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    ended_at_ms: int | None = Field(default=None, sa_type=BigInteger)
    ended_because: str | None = Field(default=None, max_length=200)


class OrderItemRow(OrderDatabase, table=True):
    """One line of an order. The lines are sorted by id."""

    __tablename__ = "order_items"

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    order_id: str = Field(max_length=36, foreign_key="orders.order_id", index=True)
    name: str = Field(max_length=200)
    quantity: int
    price_cents: int = Field(sa_type=BigInteger)


class TransactionRow(OrderDatabase, table=True):
    """The state of a transaction of the kind `order` or `cancellation`.

    A row with COMMITTED, or with PENDING if the order is paid later, is written together with the order. A row with ROLLED_BACK
    has no order. It prevents a slow local transaction from storing its order.
    """

    __tablename__ = "transactions"

    transaction_id: str = Field(primary_key=True, max_length=64)
    order_id: str | None = Field(default=None, max_length=36, index=True)
    state: str = Field(max_length=16)
    created_at_ms: int = Field(sa_type=BigInteger)
    kind: str = Field(
        default=TransactionKind.ORDER.value, max_length=16, sa_column_kwargs={"server_default": TransactionKind.ORDER.value}
    )


class DatabaseIdentityRow(OrderDatabase, table=True):
    """The id of the database. The table has one row. A copy of the database has the same id."""

    __tablename__ = "database_identity"

    database_id: str = Field(primary_key=True, max_length=32)
    made_at_ms: int = Field(sa_type=BigInteger)


class EpochRow(OrderDatabase, table=True):
    """A process that places orders in this database, and the number that it last wrote.

    The number is a time that only increases.
    """

    __tablename__ = "epochs"

    epoch_id: str = Field(primary_key=True, max_length=32)
    started_at_ms: int = Field(sa_type=BigInteger)
    renewed_at_ms: int = Field(sa_type=BigInteger)


class AdoptionRow(OrderDatabase, table=True):
    """An operator's decision, with its reason, that this database decides all half messages sent until `adopted_at_ms`."""

    __tablename__ = "adoptions"

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    adopted_at_ms: int = Field(sa_type=BigInteger)
    reason: str = Field(max_length=200)
