"""Writes the data of any number of orders directly to disk: two SQLite databases, and a commit log with consumer offsets."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from lab.benchmarks.reconciliation.faults import UNCREDITED, Fault, fault_of
from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_broker.message.record import encode_blank, encode_record, host_bytes

SEGMENT_BYTES: Final = 1 << 30
STEP_MS: Final = 5
"""The time between two orders in milliseconds. Ten million orders then span 14 hours."""
AGE_MS: Final = 600_000
"""The age of the newest order in milliseconds."""

_YEAR_MS: Final = 365 * 86_400_000
_QUEUES: Final = 8
_BATCH: Final = 20_000
_CUSTOMERS: Final = 100_000
_HOST: Final = host_bytes("127.0.0.1", 10911)

_ORDER_TABLES: Final = """
    CREATE TABLE orders (id INTEGER PRIMARY KEY, order_id VARCHAR(36), customer VARCHAR(100), total_cents BIGINT,
        currency VARCHAR(3), idempotency_key VARCHAR(255), created_at_ms BIGINT, state VARCHAR(16), pay_until_ms BIGINT,
        paid_at_ms BIGINT, ended_at_ms BIGINT, ended_because VARCHAR(200));
    CREATE TABLE order_items (id INTEGER PRIMARY KEY, order_id VARCHAR(36), name VARCHAR(200), quantity INTEGER,
        price_cents BIGINT);
    CREATE TABLE transactions (transaction_id VARCHAR(64), order_id VARCHAR(36), state VARCHAR(16), created_at_ms BIGINT,
        kind VARCHAR(16));
"""
_CREDIT_TABLES: Final = """
    CREATE TABLE credits (id INTEGER PRIMARY KEY, order_id VARCHAR(36), kind VARCHAR(16), customer VARCHAR(100), points BIGINT,
        amount_cents BIGINT, message_id VARCHAR(64), transaction_id VARCHAR(64), created_at_ms BIGINT);
    CREATE TABLE balances (customer VARCHAR(100), points BIGINT);
"""
_UNDELIVERED: Final = frozenset({Fault.DISCARDED, Fault.COMMIT_LOST, Fault.PENDING})


@dataclass(frozen=True, slots=True)
class _Order:
    number: int
    fault: Fault | None
    at_ms: int

    @property
    def order_id(self) -> str:
        return f"{self.number:08x}-0000-4000-8000-{self.number:012x}"

    @property
    def transaction_id(self) -> str:
        return f"C0000202{self.number:024X}"

    @property
    def customer(self) -> str:
        return f"customer-{self.number % _CUSTOMERS}"

    @property
    def cents(self) -> int:
        return 100 + self.number % 100_000


def write_books(folder: Path, orders: int, now_ms: int) -> None:
    """Writes orders.db, credits.db and store/ into the folder, which must not exist."""
    folder.mkdir(parents=True)
    began_ms = now_ms - AGE_MS - orders * STEP_MS
    _write_tables(folder, orders, began_ms)
    _Log(folder / "store").write(_orders(orders, began_ms))


def _orders(count: int, began_ms: int) -> Iterator[_Order]:
    return (_Order(number, fault_of(number), began_ms + number * STEP_MS) for number in range(count))


def _write_tables(folder: Path, count: int, began_ms: int) -> None:
    balances: Counter[str] = Counter()
    with (
        closing(_database(folder / "orders.db", _ORDER_TABLES)) as orders,
        closing(_database(folder / "credits.db", _CREDIT_TABLES)) as credits,
    ):
        made = _orders(count, began_ms)
        while batch := [order for _, order in zip(range(_BATCH), made, strict=False)]:
            rows = [row for order in batch for row in _credit_rows(order)]
            for row in rows:
                balances[row[1]] += row[2]
            orders.executemany(
                "INSERT INTO orders VALUES (NULL, ?, ?, ?, ?, NULL, ?, ?, NULL, NULL, NULL, NULL)",
                filter(None, map(_order_row, batch)),
            )
            orders.executemany("INSERT INTO order_items VALUES (NULL, ?, ?, ?, ?)", map(_item_row, batch))
            orders.executemany(
                "INSERT INTO transactions VALUES (?, ?, ?, ?, 'order')", filter(None, map(_transaction_row, batch))
            )
            credits.executemany("INSERT INTO credits VALUES (NULL, ?, 'credit', ?, ?, ?, ?, ?, ?)", rows)
        credits.executemany("INSERT INTO balances VALUES (?, ?)", balances.items())
        orders.commit()
        credits.commit()


def _database(path: Path, tables: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {tables}")
    return connection


def _order_row(order: _Order) -> tuple[Any, ...] | None:
    if order.fault is Fault.ORDER_ROW_LOST:
        return None
    currency = "USD" if order.fault is Fault.CURRENCY else "EUR"
    state = "CANCELLED" if order.fault is Fault.STATE else "PLACED"
    return order.order_id, order.customer, order.cents, currency, order.at_ms, state


def _item_row(order: _Order) -> tuple[Any, ...]:
    name = "another thing" if order.fault is Fault.RENAMED else "thing"
    return order.order_id, name, 2 if order.fault is Fault.ITEMS else 1, order.cents


def _transaction_row(order: _Order) -> tuple[Any, ...] | None:
    if order.fault is Fault.TRANSACTION_ROW_LOST:
        return None
    if order.fault is Fault.MARKER:
        return order.transaction_id, None, "ROLLED_BACK", order.at_ms
    return order.transaction_id, order.order_id, "COMMITTED", order.at_ms


def _credit_rows(order: _Order) -> list[tuple[Any, ...]]:
    if order.fault in UNCREDITED:
        return []
    customer = "somebody else" if order.fault is Fault.OTHER_CUSTOMER else order.customer
    points = order.cents // 100 + (order.fault is Fault.POINTS)
    cents = order.cents + (order.fault is Fault.OTHER_AMOUNT)
    transaction_id = "another's" if order.fault is Fault.OTHER_TRANSACTION else order.transaction_id
    at_ms = order.at_ms + (10 * _YEAR_MS if order.fault is Fault.FUTURE else 20)
    row = (order.order_id, customer, points, cents, order.transaction_id, transaction_id, at_ms)
    return [row, row] if order.fault is Fault.CREDITED_TWICE else [row]


class _Log:
    """Writes a commit log segment by segment, as a broker does."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._directory = store / "commitlog"
        self._directory.mkdir(parents=True)
        self._file: BinaryIO
        self._segment = 0
        self._position = 0
        self._queue_offsets: Counter[tuple[str, int]] = Counter()

    def write(self, orders: Iterator[_Order]) -> None:
        self._file = (self._directory / f"{0:020d}").open("wb", buffering=1 << 20)
        with closing(self):
            for order in orders:
                if order.fault is not Fault.NEVER_ANNOUNCED:
                    self._announce(order)
        self._write_consumer_offsets()

    def close(self) -> None:
        self._file.close()

    def _announce(self, order: _Order) -> None:
        body = _body(order)
        prepared = f"{_properties(order)}\x02TRAN_MSG\x01true\x02PGROUP\x01order_service\x02REAL_TOPIC\x01orders\x02REAL_QID\x010"
        encoded = prepared.encode()
        half_queue_offset = self._queue_offsets[topics.HALF_TOPIC, 0]
        half = self._append(topics.HALF_TOPIC, 0, order, body, encoded)
        if order.fault is Fault.PENDING:
            return
        if order.fault is Fault.DISCARDED:
            self._append(topics.CHECK_MAX_TIME_TOPIC, 0, order, body, encoded)
            return
        for _ in range(_deliveries(order)):
            self._append("orders", order.number % _QUEUES, order, body, encoded, half, is_damaged=order.fault is Fault.DAMAGED)
        if order.fault is Fault.DEAD_LETTER:
            self._append(topics.dead_letter_topic("credit_service"), 0, order, body, encoded, half)
        self._append(topics.OP_HALF_TOPIC, 0, order, b"%d" % half_queue_offset, b"TAGS\x01d")

    def _append(
        self,
        topic: str,
        queue_id: int,
        order: _Order,
        body: bytes,
        encoded: bytes,
        half: int | None = None,
        *,
        is_damaged: bool = False,
    ) -> int:
        size = 91 + len(body) + len(topic) + len(encoded)
        if self._position + size + 8 > SEGMENT_BYTES:
            self._file.write(encode_blank(SEGMENT_BYTES - self._position))
            self._file.close()
            self._segment += SEGMENT_BYTES
            self._position = 0
            self._file = (self._directory / f"{self._segment:020d}").open("wb", buffering=1 << 20)
        offset = self._segment + self._position
        record = encode_record(
            topic=topic.encode(),
            queue_id=queue_id,
            queue_offset=self._queue_offsets[topic, queue_id],
            commit_log_offset=offset,
            flag=0,
            sys_flag=0 if half is None else sysflag.TRANSACTION_COMMIT_TYPE,
            born_timestamp=order.at_ms,
            born_host=_HOST,
            store_timestamp=order.at_ms + 5,
            store_host=_HOST,
            reconsume_times=0,
            prepared_transaction_offset=half or 0,
            body=body,
            properties=encoded,
            crc=0 if is_damaged else None,
        )
        self._queue_offsets[topic, queue_id] += 1
        self._file.write(record)
        self._position += len(record)
        return offset

    def _write_consumer_offsets(self) -> None:
        consumed = {str(queue_id): offset for (topic, queue_id), offset in self._queue_offsets.items() if topic == "orders"}
        config = self._store / "config"
        config.mkdir()
        content = {"offsetTable": {"orders@credit_service": consumed}}
        (config / "consumerOffset.json").write_text(json.dumps(content))


def _deliveries(order: _Order) -> int:
    return 0 if order.fault in _UNDELIVERED else 2 if order.fault is Fault.DELIVERED_TWICE else 1


def _properties(order: _Order) -> str:
    named = {properties.KEYS: order.order_id, properties.TAGS: "created", properties.UNIQUE_KEY: order.transaction_id}
    return properties.encode(named).decode()


def _body(order: _Order) -> bytes:
    cents = order.cents + (order.fault is Fault.BODY)
    amount = f'"{cents}"' if order.fault is Fault.UNREADABLE else cents
    return (
        f'{{"version": 2, "order_id": "{order.order_id}", "customer": "{order.customer}", "total_cents": {amount}, '
        f'"currency": "EUR", "created_at_ms": {order.at_ms}, "items": [{{"name": "thing", "quantity": 1}}]}}'
    ).encode()
