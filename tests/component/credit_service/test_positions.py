"""Tests that a reset of the credit database is detected, and that messages in the inbox do not look like a reset."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from credit_service.adapters.ledger import Ledger
from rocketmq_broker.client import MessageQueue
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from service_runtime.database.sessions import Sessions
from tests.component.credit_service.conftest import MIGRATIONS, an_order, orders, points
from tests.component.credit_service.test_crediting import drain, refuse

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.mark.parametrize("count", [3, 2_000], ids=["a few", "more than a statement has parameters"])
def test_messages_count_as_stored_while_they_wait_and_after_they_were_credited(ledger: Ledger, count: int) -> None:
    ledger.store(orders(count))
    assert ledger.positions.save({QUEUE: count}) == {}
    drain(ledger)
    assert ledger.positions.save({QUEUE: count + 1}) == {}
    assert ledger.positions.read(QUEUE) == count + 1


def test_messages_that_are_credited_while_they_are_looked_for_are_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inbox is read before the ledger, because messages move from the inbox to the ledger."""
    batch = orders(40)
    ledger.store(batch)
    reading = Sessions.reading
    reads: list[None] = []

    def drain_meanwhile(sessions: Sessions) -> object:
        reads.append(None)
        if len(reads) == 1:
            drain(ledger, batch_size=20)
        return reading(sessions)

    monkeypatch.setattr(Sessions, "reading", drain_meanwhile)
    assert ledger.positions.save({QUEUE: 40}) == {}


@pytest.mark.parametrize("is_dismissed", [False, True])
def test_parked_and_dismissed_messages_do_not_look_like_a_reset_database(
    ledger: Ledger, engine: Engine, is_dismissed: bool
) -> None:
    refuse(engine, 666)
    ledger.store([an_order("bad", 9, amount_cents=666)])
    assert drain(ledger, max_tries=0).parked == 1
    if is_dismissed:
        assert ledger.inbox.dismiss([message.key for message in ledger.inbox.parked()]) == 1
    assert ledger.positions.save({QUEUE: 10}) == {}
    assert ledger.inbox.retry() == (not is_dismissed)


def test_refused_orders_do_not_look_like_a_reset_database(ledger: Ledger, engine: Engine) -> None:
    refuse(engine, 666)
    ledger.store([an_order("bad", 9, amount_cents=666)])
    drain(ledger, max_tries=0, cancel_refused=True)
    assert ledger.positions.save({QUEUE: 10}) == {}


@pytest.mark.parametrize("table", ["rocketmq_inbox", "credits"])
def test_a_database_without_the_latest_messages_is_an_older_copy(ledger: Ledger, engine: Engine, table: str) -> None:
    ledger.store(orders(3))
    assert ledger.positions.save({QUEUE: 3}) == {}
    ledger.store(orders(3, first=3))
    if table == "credits":
        drain(ledger)
    with engine.begin() as connection:
        last = "order_id = 'order-5'" if table == "credits" else "message_key LIKE 'id-5:%'"
        connection.execute(text(f"DELETE FROM {table} WHERE {last}"))
    assert ledger.positions.save({QUEUE: 6}) == {QUEUE: 3}, "the messages since then are redelivered"


@pytest.mark.parametrize("is_drained", [False, True])
def test_a_restored_copy_is_noticed_and_gets_again_what_it_lacks(
    sqlite_ledger: Ledger, sqlite_url: str, database_folder: Path, is_drained: bool
) -> None:
    """The copy contains the messages that were waiting when it was made. Later messages are redelivered."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    sqlite_ledger.store(orders(5))
    sqlite_ledger.positions.save({QUEUE: 5})
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(database_folder / "copy.db")) as copy:
        source.backup(copy)
    sqlite_ledger.store(orders(5, first=5))
    sqlite_ledger.positions.save({QUEUE: 10})
    if is_drained:
        drain(sqlite_ledger)
    with closing(sqlite3.connect(database_folder / "copy.db")) as copy, closing(sqlite3.connect(path)) as target:
        copy.backup(target)
    lacking = sqlite_ledger.positions.save({QUEUE: 10})
    assert lacking == {QUEUE: 5}
    sqlite_ledger.positions.forget_results()
    sqlite_ledger.positions.forget(QUEUE)
    sqlite_ledger.store(orders(5, first=5))
    assert sqlite_ledger.positions.save({QUEUE: 10}) == {}
    engine = open_database(sqlite_url, migrations=MIGRATIONS, start_timeout_s=10)
    fresh = Ledger(engine, World())
    drain(fresh)
    assert points(fresh) == 10
    engine.dispose()
