"""The credit database's tables. Only `ledger` and the migrations know them; `pipelines` reads them from outside."""

from typing import Final

from sqlalchemy import BigInteger
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from service_runtime.columns import ROW_ID

MIGRATIONS: Final = "credit_service:migrations"
"""Where Alembic finds what brings the tables to this version."""


class CreditDatabase(SQLModel, registry=registry()):
    """Base of the tables; keeps them apart from another service's in the same process."""


class CreditRow(CreditDatabase, table=True):
    """One entry of the ledger; entries are only ever added."""

    __tablename__ = "credits"

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    order_id: str = Field(max_length=36, unique=True)
    customer: str = Field(max_length=100, index=True)
    points: int = Field(sa_type=BigInteger)
    amount_cents: int = Field(sa_type=BigInteger)
    message_id: str = Field(max_length=64)
    transaction_id: str | None = Field(default=None, max_length=64)
    created_at_ms: int = Field(sa_type=BigInteger)


class BalanceRow(CreditDatabase, table=True):
    """The sum of a customer's entries."""

    __tablename__ = "balances"

    customer: str = Field(primary_key=True, max_length=100)
    points: int = Field(sa_type=BigInteger)
