"""Stores stock and shipments. Both change in the database transaction that removes messages from the inbox.

A shipment's row is unique by order and is inserted first. A second writer that finds the row does not change the stock. Therefore
a redelivery ships nothing twice, and an order that was cancelled before its creation arrived is not shipped. A batch locks the
rows of its shipments by order id, and then the rows of its articles by name, so that batches cannot deadlock.

The same database contains the inbox, in which messages wait, and the outbox, which holds messages about shortages.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from prometheus_client import CollectorRegistry
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from inventory_service.adapters.tables import POSITIONS, InventoryDatabase, ShipmentLineRow, ShipmentRow, StockRow
from inventory_service.domain.shipment import Instruction, Shipment, ShipmentState, first_missing, totals
from inventory_service.service_layer.shipping import instruction_of
from rocketmq_broker.databases.missing_rows import insert_missing
from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import World
from service_runtime.database.sessions import Sessions
from service_runtime.messaging.positions import Positions

ResultKey = tuple[str, str, bool]
"""The key of a stored message: the key of its row in the inbox, the order id, and True if the message calls the order off."""
Applied = Callable[[Instruction, Shipment], None]
CONSUMER: Final = "inventory_service"
"""The consumer group, and the consumer of the inbox."""
SHORTAGES: Final = "inventory_service.shortages"
"""The consumer of the outbox, which contains messages to the order service."""
_AFTER_A_SETBACK: Final = "Stock that was entered since is lost: enter it again"
_SHIPMENTS: Final = InventoryDatabase.metadata.tables["shipments"]
_LINES: Final = InventoryDatabase.metadata.tables["shipment_lines"]
_APPLIED: Final = "applied"


class ShipmentNotStored(Exception):
    """Raised if the database accepted a row but did not store it, because of a trigger or a rule. Nothing was written."""


class SqlStockRoom:
    """The inventory database. Safe to use from several threads and processes.

    Methods that take no session raise DatabaseFailure.
    """

    def __init__(
        self,
        engine: Engine,
        world: World,
        applied: Applied = lambda instruction, shipment: None,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        """Uses an engine that `service_runtime.database.opening.open_database` returned.

        `applied` is called with each instruction and its shipment after the database commit.
        """
        self._now_ms = world.wall_ms
        self._sessions = Sessions(engine, now_s=world.steady_s, acquire=world.acquire)
        self._applied = applied
        self.positions = Positions[ResultKey](
            self._sessions, POSITIONS, has_all=self._has_all_results, service="inventory", to_do=_AFTER_A_SETBACK, metrics=metrics
        )
        """The positions of the consumer group in this database."""
        self.inbox = Inbox(self._writing, CONSUMER, world, reading=self._sessions.reading)
        """The messages that wait to be processed."""
        self.shortages = Inbox(self._sessions.writing, SHORTAGES, world, reading=self._sessions.reading)
        """The messages to the order service that wait to be sent."""

    def store(self, messages: Sequence[MessageExt]) -> None:
        """Stores messages in the inbox. They are durable when the method returns."""
        self.inbox.put(messages)
        instructions = [(self.inbox.key_of(message), instruction_of(message)) for message in messages]
        self.positions.acknowledging([(key, one.order_id, one.lines is None) for key, one in instructions])

    def apply(self, session: Session, instructions: Sequence[Instruction]) -> list[Shipment]:
        """Ships or calls off orders in the caller's database transaction. Returns their shipments in the same sequence.

        An order is shipped if there is enough stock, otherwise it becomes SHORT. If an order is called off, its articles return
        to stock; if it was not shipped yet, it will never be shipped. Repeating a call has no effect. Raises ShipmentNotStored,
        or the database's error if the database refuses a row.
        """
        first: dict[str, Instruction] = {}
        for instruction in instructions:
            first.setdefault(instruction.order_id, instruction)
        new = self._insert_missing(session, first)
        rows = _locked_shipments(session, first)
        taken = _taken_before(session, [one.order_id for one in instructions if one.lines is None])
        wanted = {line.article for one in instructions for line in one.lines or ()}
        stock = _locked_stock(session, wanted.union(*taken.values()))
        locked = _LockedRows(rows, new, stock, taken)
        shipments = [locked.apply(instruction) for instruction in instructions]
        if len(insert_missing(session.connection(), _LINES, locked.lines, ["order_id", "article"])) < len(locked.lines):
            raise ShipmentNotStored(
                f"cannot store {len(locked.lines)} shipment lines: a row was neither inserted nor found; "
                "check the database for triggers and rules"
            )
        session.info.setdefault(_APPLIED, []).extend(zip(instructions, shipments, strict=True))
        return shipments

    def report(self, session: Session, message: Message) -> None:
        """Stores a message in the outbox, in the caller's database transaction."""
        self.shortages.put_in(session, [message])

    def set_stock(self, article: str, available: int) -> None:
        """Sets the stock of an article, and starts to track the article if it was not tracked."""
        insert = self._sessions.insert(StockRow).values(article=article, available=available)
        with self._sessions.writing() as session:
            session.execute(insert.on_conflict_do_update(index_elements=["article"], set_={"available": available}))

    def find_stock(self, article: str) -> int | None:
        """Returns the stock of an article, or None if the article is not tracked."""
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

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with self._sessions.writing() as session:
            yield session
        for instruction, shipment in session.info.get(_APPLIED, ()):
            self._applied(instruction, shipment)

    def _has_all_results(self, session: Session, keys: Collection[ResultKey]) -> bool:
        """Returns True if each message is in the inbox or was processed.

        Messages move from the inbox to the shipments. The inbox is therefore read first: a message that is no longer there was
        processed.
        """
        kept = self.inbox.kept_in(session, [message_key for message_key, _, _ in keys])
        processed = {(order_id, is_off) for message_key, order_id, is_off in keys if message_key not in kept}
        ids = {order_id for order_id, _ in processed}
        query = select(ShipmentRow.order_id, ShipmentRow.state).where(col(ShipmentRow.order_id).in_(sorted(ids)))
        found = dict(session.exec(query).all()) if processed else {}
        return all(order in found and not (is_off and found[order] == ShipmentState.SHIPPED.value) for order, is_off in processed)

    def _insert_missing(self, session: Session, first: Mapping[str, Instruction]) -> set[str]:
        """Inserts the missing rows of orders and returns these orders' ids. `first` contains each order's first instruction."""
        now_ms = self._now_ms()
        rows = [{"order_id": one, "state": first[one].first_state.value, "created_at_ms": now_ms} for one in sorted(first)]
        return {order_id for (order_id,) in insert_missing(session.connection(), _SHIPMENTS, rows, ["order_id"])}


@dataclass(frozen=True, slots=True)
class _LockedRows:
    """The locked rows of a batch's orders and articles."""

    shipments: Mapping[str, ShipmentRow]
    new: set[str]
    """The orders whose row was inserted by this batch and that no instruction has changed yet."""
    stock: Mapping[str, StockRow]
    taken: dict[str, dict[str, int]]
    """The quantities of each article that were taken from stock for the orders."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    """The rows to insert for the quantities that this batch takes."""

    def apply(self, instruction: Instruction) -> Shipment:
        row = self.shipments[instruction.order_id]
        is_new = row.order_id in self.new or (instruction.lines is None and row.state == ShipmentState.SHIPPED.value)
        if instruction.lines is None:
            self._give_back(row)
        elif row.order_id in self.new:
            self._take(row, totals(instruction.lines))
        self.new.discard(row.order_id)
        return replace(_shipment(row), is_new=is_new)

    def _take(self, row: ShipmentRow, wanted: Mapping[str, int]) -> None:
        tracked = {article: quantity for article, quantity in wanted.items() if article in self.stock}
        row.missing = first_missing(tracked, {article: self.stock[article].available for article in tracked})
        if row.missing is not None:
            row.state = ShipmentState.SHORT.value
            return
        self.taken[row.order_id] = tracked
        for article, quantity in tracked.items():
            self.stock[article].available -= quantity
            self.lines.append({"order_id": row.order_id, "article": article, "quantity": quantity})

    def _give_back(self, row: ShipmentRow) -> None:
        """Returns the order's articles to stock if it was shipped. Skips articles without a stock row."""
        if row.state != ShipmentState.SHIPPED.value:
            return
        row.state = ShipmentState.RETURNED.value
        for article, quantity in self.taken.get(row.order_id, {}).items():
            if article in self.stock:
                self.stock[article].available += quantity


def _locked_shipments(session: Session, order_ids: Collection[str]) -> dict[str, ShipmentRow]:
    query = select(ShipmentRow).where(col(ShipmentRow.order_id).in_(sorted(order_ids))).order_by(col(ShipmentRow.order_id))
    rows = {row.order_id: row for row in session.exec(query.with_for_update())}
    if missing := order_ids - rows.keys():
        raise ShipmentNotStored(
            f"cannot store the shipment of order {min(missing)}: the row was neither inserted nor found; "
            "check the database for triggers and rules"
        )
    return rows


def _locked_stock(session: Session, articles: Iterable[str]) -> dict[str, StockRow]:
    query = select(StockRow).where(col(StockRow.article).in_(sorted(articles))).order_by(col(StockRow.article))
    return {row.article: row for row in session.exec(query.with_for_update())}


def _taken_before(session: Session, order_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Returns the quantities that were taken from stock for these orders."""
    taken: dict[str, dict[str, int]] = {}
    if order_ids:
        for line in session.exec(select(ShipmentLineRow).where(col(ShipmentLineRow.order_id).in_(order_ids))):
            taken.setdefault(line.order_id, {})[line.article] = line.quantity
    return taken


def _shipment(row: ShipmentRow) -> Shipment:
    return Shipment(row.order_id, ShipmentState(row.state), row.missing)
