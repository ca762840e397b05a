"""The inventory database's tables. Only `stock_room` and the migrations know them."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

MIGRATIONS: Final = "inventory_service:migrations"
"""Where Alembic finds what brings the tables to this version."""


class InventoryDatabase(SQLModel, registry=registry()):
    """Base of the tables; keeps them apart from another service's in the same process."""


class StockRow(InventoryDatabase, table=True):
    """How many of an article there are; articles without a row are not counted."""

    __tablename__ = "stock"
    __table_args__ = (CheckConstraint("available >= 0", name="ck_stock_available"),)

    article: str = Field(primary_key=True, max_length=200)
    available: int = Field(sa_type=BigInteger)


class ShipmentRow(InventoryDatabase, table=True):
    """What became of an order: SHIPPED, SHORT, RETURNED or CALLED_OFF."""

    __tablename__ = "shipments"

    order_id: str = Field(primary_key=True, max_length=36)
    state: str = Field(max_length=16)
    missing: str | None = Field(default=None, max_length=200)
    created_at_ms: int = Field(sa_type=BigInteger)


class ShipmentLineRow(InventoryDatabase, table=True):
    """What was taken from the stock for an order: counted articles only."""

    __tablename__ = "shipment_lines"

    order_id: str = Field(primary_key=True, max_length=36, foreign_key="shipments.order_id")
    article: str = Field(primary_key=True, max_length=200)
    quantity: int = Field(sa_type=BigInteger)
