"""Reads the stored data of a simulation once for all judges: the rows of its databases and the commit logs of its brokers."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, text

from order_messages.states import TransactionKind, TransactionState
from pipelines.judging.route import Route
from pipelines.judging.without_spark.auditing import RecordsOfBroker
from pipelines.judging.without_spark.in_sqlite import Row
from pipelines.judging.without_spark.table_events import TableRows
from pipelines.sources.logs.consumer_offsets import consumer_offsets_in
from rocketmq_broker.databases.inbox import InboxStatus
from rocketmq_broker.message import properties
from rocketmq_broker.message.record import SIZE_LENGTH
from rocketmq_commitlog.commit_log import Damage, LogRecord
from rocketmq_commitlog.segment_bytes import scan_bytes

Database = Engine | sqlite3.Connection
Files = Mapping[Path, bytes]
"""Maps the paths of a broker's files to their contents."""
ROUTE: Final = Route()
CONSUMED: Final = {
    "credit_service": ("orders", "order_cancellations", "%RETRY%credit_service"),
    "inventory_service": ("orders", "order_cancellations", "%RETRY%inventory_service"),
    "order_service": ("order_shortages", "credit_refusals", "%RETRY%order_service"),
}
"""Maps consumer groups to their topics."""
_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}")


@dataclass(frozen=True, slots=True)
class BrokerStore:
    """The files of one broker, decoded."""

    records: tuple[LogRecord | Damage, ...]
    offsets: Mapping[str, Mapping[str, Mapping[int, int]]]
    """The offsets of the next messages to consume, keyed by consumer group, topic and queue id.

    Queues that were never consumed are omitted.
    """

    @property
    def messages(self) -> list[LogRecord]:
        """The records of messages, without damage."""
        return [record for record in self.records if isinstance(record, LogRecord)]


@dataclass(frozen=True, slots=True)
class WorldBooks:
    """The stored data of a simulation."""

    tables: TableRows
    shipments: tuple[Row, ...]
    shipment_lines: tuple[Row, ...]
    inboxes: tuple[Row, ...]
    """The rows of all inboxes and outboxes."""
    stores: Mapping[str, BrokerStore]
    """Maps broker names to stores."""

    @property
    def announced(self) -> frozenset[str]:
        """The orders whose messages are committed according to the order database."""
        return frozenset(
            row["order_id"]
            for row in self.tables.transactions
            if (row["kind"], row["state"]) == (TransactionKind.ORDER, TransactionState.COMMITTED)
        )

    @property
    def waiting(self) -> frozenset[tuple[str, str]]:
        """The consumer and the key of each message that is waiting in an inbox or an outbox and is not parked."""
        return frozenset(
            (row["consumer"], row["message_key"])
            for row in self.inboxes
            if row["status"] in (InboxStatus.NEW, InboxStatus.FAILED)
        )

    @property
    def parked(self) -> Mapping[str, frozenset[str]]:
        """Maps each consumer group to the orders whose messages are parked in its inbox."""
        groups = {row["consumer"] for row in self.inboxes}
        return {
            group: frozenset(
                key
                for row in self.inboxes
                if (row["consumer"], row["status"]) == (group, InboxStatus.PARKED)
                for key in keys_of(row)
            )
            for group in groups
        }

    @property
    def logs(self) -> list[RecordsOfBroker]:
        """The commit logs in the form that the reconciliation reads."""
        return [
            RecordsOfBroker(store.records, {topic: store.offsets[ROUTE.consumer_group][topic] for topic in ROUTE.consumed_topics})
            for store in self.stores.values()
        ]


def read_books(orders: Database, credits: Database, stock: Database | None, stores: Mapping[str, BrokerStore]) -> WorldBooks:
    """Reads the services' databases. `stores` is keyed by broker name. `stock` is None without an inventory service."""
    inbox = rows_of(credits, "rocketmq_inbox")
    tables = TableRows(
        orders=rows_of(orders, "orders"),
        order_items=rows_of(orders, "order_items"),
        transactions=rows_of(orders, "transactions"),
        credits=rows_of(credits, "credits"),
        balances=rows_of(credits, "balances"),
        inbox=inbox,
    )
    return WorldBooks(
        tables,
        () if stock is None else rows_of(stock, "shipments"),
        () if stock is None else rows_of(stock, "shipment_lines"),
        (*inbox, *(() if stock is None else rows_of(stock, "rocketmq_inbox"))),
        stores,
    )


def _is_segment(path: Path) -> bool:
    return path.parent.name == "commitlog" and _SEGMENT_NAME.fullmatch(path.name) is not None


def _is_torn(damage: Damage, segments: Mapping[int, bytes], torn: Iterable[range]) -> bool:
    """Returns True if damage begins with a record of which a part was not synced, and ends where unsynced records end."""
    begins, ends = damage.commit_log_offset, damage.commit_log_offset + damage.size
    segment = max(offset for offset in segments if offset <= begins)
    size = int.from_bytes(segments[segment][begins - segment : begins - segment + SIZE_LENGTH], "big")
    return any(begins + max(size, SIZE_LENGTH) > lost.start and ends <= lost.stop for lost in torn)


def rows_of(database: Database, table: str) -> tuple[Row, ...]:
    """Returns all rows of a table in the order in which they were written."""
    query = f"SELECT * FROM {table} ORDER BY rowid"
    if isinstance(database, Engine):
        with database.connect() as connection:
            return tuple(dict(row) for row in connection.execute(text(query)).mappings())
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    return tuple(dict(zip(names, values, strict=True)) for values in cursor)


def keys_of(row: Row) -> tuple[str, ...]:
    """Returns the keys of the message in a row of an inbox."""
    return tuple(str(json.loads(row["properties"]).get(properties.KEYS, "")).split())


def read_store(files: Files, unsynced: Iterable[tuple[Path, range]] = ()) -> BrokerStore:
    """Reads the commit log and the consumers' offsets from a broker's files.

    Omits damage in the parts of files that were `unsynced` at a power failure: it is not damage to a message that was stored.
    """
    segments = {int(path.name): content for path, content in files.items() if _is_segment(path)}
    offsets = next((content for path, content in files.items() if path.name == "consumerOffset.json"), b"{}")
    torn = [range(int(path.name) + lost.start, int(path.name) + lost.stop) for path, lost in unsynced if _is_segment(path)]
    found = tuple(scan_bytes(segments))
    return BrokerStore(
        tuple(it for it in found if isinstance(it, LogRecord) or not _is_torn(it, segments, torn)),
        {group: {topic: consumer_offsets_in(offsets, group, topic) for topic in topics} for group, topics in CONSUMED.items()},
    )
