"""The tables of the inventory database. Only `stock_room` and the migrations use them."""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from rocketmq_broker.databases.sqlalchemy import add_inbox
from service_runtime.messaging.positions import PositionTables

MIGRATIONS: Final = "inventory_service:migrations"
"""The location of the migrations, for Alembic."""


class InventoryDatabase(SQLModel, registry=registry()):
    """Base class of the tables. It keeps them separate from the tables of other services in the same process."""


class StockRow(InventoryDatabase, table=True):
    """The stock of an article. Articles without a row are not tracked."""

    __tablename__ = "stock"
    __table_args__ = (CheckConstraint("available >= 0", name="ck_stock_available"),)

    article: str = Field(primary_key=True, max_length=200)
    available: int = Field(sa_type=BigInteger)


class ShipmentRow(InventoryDatabase, table=True):
    """The shipment of an order, in the state SHIPPED, SHORT, RETURNED or CALLED_OFF."""

    __tablename__ = "shipments"

    order_id: str = Field(primary_key=True, max_length=36)
    state: str = Field(max_length=16)
    missing: str | None = Field(default=None, max_length=200)
    created_at_ms: int = Field(sa_type=BigInteger)


class ShipmentLineRow(InventoryDatabase, table=True):
    """A quantity taken from stock for an order. Articles that are not tracked have no such rows."""

    __tablename__ = "shipment_lines"

    order_id: str = Field(primary_key=True, max_length=36, foreign_key="shipments.order_id")
    article: str = Field(primary_key=True, max_length=200)
    quantity: int = Field(sa_type=BigInteger)


POSITIONS: Final = PositionTables.of(InventoryDatabase.metadata)
"""The tables of the consumer group's positions, which are the offsets before which all messages have been processed."""

add_inbox(InventoryDatabase.metadata)
