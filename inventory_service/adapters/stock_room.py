"""Stores stock and shipments. Both change in one database transaction.

A shipment's row is unique by order and is inserted first. A second writer that finds the row does not change the stock. So a
redelivery ships nothing twice, and an order that was cancelled before its creation arrived is not shipped. Stock rows are locked
in the order of their names, so that shipments cannot deadlock.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from inventory_service.adapters.tables import POSITIONS, InventoryDatabase, ShipmentLineRow, ShipmentRow, StockRow
from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState, first_missing, totals
from rocketmq_broker.databases.missing_rows import insert_missing
from rocketmq_broker.world import World
from service_runtime.database.positions import Positions
from service_runtime.database.sessions import Sessions

ShipmentKey = tuple[str, ShipmentState]
"""The key of a stored shipment: the order id and the state."""
_SHIPMENTS: Final = InventoryDatabase.metadata.tables["shipments"]


class SqlStockRoom:
    """The inventory database. Safe to use from several threads and processes. All methods raise DatabaseFailure."""

    def __init__(self, engine: Engine, world: World) -> None:
        """`engine` comes from `service_runtime.database.opening.open_database`."""
        self._now_ms = world.wall_ms
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire)
        self.positions = Positions[ShipmentKey](self._sessions, POSITIONS, has_all=_has_all_shipments)
        """The positions of the consumer group in this database."""

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        """Ships the order if there is enough stock, otherwise marks it SHORT. The change is durable on return."""
        with self._sessions.writing() as session:
            if not self._is_new(session, order_id, ShipmentState.SHIPPED):
                return _shipment(_locked(session, order_id))
            wanted = totals(lines)
            stock = _locked_stock(session, wanted)
            missing = first_missing(wanted, {article: row.available for article, row in stock.items()})
            row = _locked(session, order_id)
            if missing is None:
                _take(session, order_id, wanted, stock)
            else:
                row.state, row.missing = ShipmentState.SHORT.value, missing
                session.add(row)
            return _shipment(row, is_new=True)

    def call_off(self, order_id: str) -> Shipment:
        """Returns a shipped order to stock, or prevents it from being shipped later. The change is durable on return."""
        with self._sessions.writing() as session:
            if self._is_new(session, order_id, ShipmentState.CALLED_OFF):
                return Shipment(order_id, ShipmentState.CALLED_OFF, is_new=True)
            row = _locked(session, order_id)
            is_shipped = row.state == ShipmentState.SHIPPED.value
            if is_shipped:
                _give_back(session, order_id)
                row.state = ShipmentState.RETURNED.value
                session.add(row)
            return _shipment(row, is_new=is_shipped)

    def set_stock(self, article: str, available: int) -> None:
        """Sets the stock of an article, and starts to track the article if it was not tracked."""
        insert = self._sessions.insert(StockRow).values(article=article, available=available)
        with self._sessions.writing() as session:
            session.execute(insert.on_conflict_do_update(index_elements=["article"], set_={"available": available}))

    def find_stock(self, article: str) -> int | None:
        """Returns the stock of an article, or None if it is not tracked."""
        with self._sessions.reading() as session:
            row = session.get(StockRow, article)
            return None if row is None else row.available

    def find_shipment(self, order_id: str) -> Shipment | None:
        """Returns the order's shipment, or None if no message of the order has been consumed yet."""
        with self._sessions.reading() as session:
            row = session.get(ShipmentRow, order_id)
            return None if row is None else _shipment(row)

    def why_unready(self) -> str | None:
        """Returns the reason why rows cannot be written now, in one line; None if they can."""
        return self._sessions.why_unwritable(InventoryDatabase.metadata.sorted_tables)

    def _is_new(self, session: Session, order_id: str, state: ShipmentState) -> bool:
        """Inserts the order's row with this state. Returns False if an earlier message of the order has inserted it."""
        row = {"order_id": order_id, "state": state.value, "created_at_ms": self._now_ms()}
        return bool(insert_missing(session.connection(), _SHIPMENTS, [row], ["order_id"]))


def _has_all_shipments(session: Session, keys: Collection[ShipmentKey]) -> bool:
    """Returns True if the database has all these shipments.

    The state is compared only for RETURNED, because it is the only state that follows another one.
    """
    query = select(ShipmentRow.order_id, ShipmentRow.state).where(col(ShipmentRow.order_id).in_({order for order, _ in keys}))
    found = {order: ShipmentState(state) for order, state in session.exec(query)} if keys else {}
    returned = ShipmentState.RETURNED
    return all(order in found and (state is not returned or found[order] is returned) for order, state in keys)


def _locked(session: Session, order_id: str) -> ShipmentRow:
    return session.exec(select(ShipmentRow).where(col(ShipmentRow.order_id) == order_id).with_for_update()).one()


def _locked_stock(session: Session, articles: Mapping[str, int]) -> dict[str, StockRow]:
    query = select(StockRow).where(col(StockRow.article).in_(sorted(articles))).order_by(col(StockRow.article))
    return {row.article: row for row in session.exec(query.with_for_update())}


def _take(session: Session, order_id: str, wanted: Mapping[str, int], stock: Mapping[str, StockRow]) -> None:
    for article, row in stock.items():
        row.available -= wanted[article]
        session.add(row)
        session.add(ShipmentLineRow(order_id=order_id, article=article, quantity=wanted[article]))


def _give_back(session: Session, order_id: str) -> None:
    """Returns the order's articles to stock. Skips articles without a stock row."""
    lines = session.exec(select(ShipmentLineRow).where(col(ShipmentLineRow.order_id) == order_id)).all()
    taken = {line.article: line.quantity for line in lines}
    for article, row in _locked_stock(session, taken).items():
        row.available += taken[article]
        session.add(row)


def _shipment(row: ShipmentRow, *, is_new: bool = False) -> Shipment:
    return Shipment(row.order_id, ShipmentState(row.state), row.missing, is_new)
