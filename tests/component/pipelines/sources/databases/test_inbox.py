"""Tests that read the inbox from the credit service's own databases, with rows that the service wrote."""

import json
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.orm import Session

from credit_service.adapters.ledger import CONSUMER
from credit_service.adapters.tables import MIGRATIONS
from order_messages import order_created
from pipelines.embedded import reconcile_embedded
from pipelines.errors import UnreadableDatabase
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books
from pipelines.sources.databases.adbc import BATCH_ROWS
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import INBOX, check_tables, read_inbox, read_unreadable_values
from rocketmq_broker.databases.inbox import InboxMessage, ParkMessage
from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message
from tests.component.pipelines.conftest import ShopDatabases

ORDER_IDS = ["new", "fails", "parks", "lost"]


@pytest.fixture
def migrations() -> str:
    """Returns the migrations of the credit service. They create the service's tables on SQLite and PostgreSQL."""
    return MIGRATIONS


def put(inbox: Inbox[Session], *order_ids: str) -> None:
    bodies = {order_id: json.dumps({"order_id": order_id}).encode() for order_id in order_ids}
    inbox.put([Message.of(order_created.TOPIC, body, keys=[order_id]) for order_id, body in bodies.items()])


def fail(session: Session, messages: Sequence[InboxMessage]) -> None:
    order_id = json.loads(messages[0].body)["order_id"]
    raise ParkMessage("it contradicts the ledger") if order_id == "parks" else ValueError("no")


def test_the_judge_reads_what_the_service_stores_and_needs_no_inbox(
    engine: Engine, database_url: str, shop: ShopDatabases, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000
    shop.add_orders(ORDER_IDS, at_ms=now_ms - 200_000)
    inbox = Inbox(lambda: Session(engine), CONSUMER)
    put(inbox, "fails", "parks")
    inbox.drain(fail)
    put(inbox, "new")

    def found() -> dict[str, tuple[str, str, str | None]]:
        books = Books(shop.order_database, parse_database_url(database_url))
        check_tables(books.order_database, books.credit_database)
        rows = reconcile_embedded(books, CutOff(now_ms), str(tmp_path / "out")).rows
        return {row["order_id"]: (row["finding"], row["cause"], row["last_error"]) for row in rows}

    lost = (Finding.MISSING_CREDIT, Cause.UNKNOWN, None)
    assert found() == {
        "new": (Finding.IN_FLIGHT, Cause.WAITING, None),
        "fails": (Finding.IN_FLIGHT, Cause.WAITING, "ValueError: no"),
        "parks": (Finding.MISSING_CREDIT, Cause.PARKED, "ParkMessage: it contradicts the ledger"),
        "lost": lost,
    }
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {INBOX.name}"))
    assert found() == dict.fromkeys(ORDER_IDS, lost)
    assert INBOX.name not in inspect(engine).get_table_names()


def test_values_of_the_inbox_that_are_not_of_their_columns_type_are_named(shop: ShopDatabases) -> None:
    addresses = shop.order_database, shop.credit_database
    shop.store("fine", b"\xff\xfe", last_error="Error: no")
    assert read_unreadable_values(*addresses) == []
    shop.store("odd", b"{}")
    shop.credits.execute("UPDATE rocketmq_inbox SET body = 'text', received_at_ms = 'now' WHERE message_key = 'odd'")
    shop.credits.commit()
    (told,) = read_unreadable_values(*addresses)
    assert told == "rocketmq_inbox row 2: body: text 'text'; received_at_ms: text 'now'"
    *_, odd = [row for batch in read_inbox(addresses[1]) for row in batch.to_pylist()]
    assert (odd["body"], odd["received_at_ms"]) == (b"text", None)


def test_an_inbox_that_lacks_a_column_is_not_taken_for_an_empty_one(shop: ShopDatabases) -> None:
    shop.credits.execute("CREATE TABLE rocketmq_inbox (consumer TEXT, message_key TEXT)")
    with pytest.raises(UnreadableDatabase, match="topic"):
        check_tables(shop.order_database, shop.credit_database)


def test_a_reason_behind_many_rows_without_one_is_read(shop: ShopDatabases) -> None:
    """A reason is read as text, although SQLite's driver takes a batch that contains only NULL for integers."""
    shop.add_inbox()
    rows = [
        ("credit_service", str(number), "orders", b"{}", "{}", "NEW", number, 1, 0, None, None) for number in range(BATCH_ROWS)
    ]
    shop.credits.executemany("INSERT INTO rocketmq_inbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    shop.store("last", b"{}", status="FAILED", last_error="Error: no")
    reasons = [reason for batch in read_inbox(shop.credit_database) for reason in batch["last_error"].to_pylist()]
    assert (len(reasons), reasons[-1], set(reasons[:-1])) == (BATCH_ROWS + 1, "Error: no", {None})


def test_an_inbox_may_be_a_view(shop: ShopDatabases) -> None:
    shop.store("a", b"{}")
    shop.credits.executescript("ALTER TABLE rocketmq_inbox RENAME TO away; CREATE VIEW rocketmq_inbox AS SELECT * FROM away;")
    assert [batch.num_rows for batch in read_inbox(shop.credit_database)] == [1]


def test_reading_creates_no_table(shop: ShopDatabases) -> None:
    assert list(read_inbox(shop.credit_database)) == []
    with sqlite3.connect(shop.credits_path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'rocketmq_inbox'").fetchone() == (0,)
    connection.close()
