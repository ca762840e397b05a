"""Tests that the reconciliation gives the same verdict for Apache's broker and for this broker.

The reconciliation pulls the messages, or reads them from the stores.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.ports import free_ports
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.route import Route
from pipelines.judging.totals import SUMMED, Tolerance
from pipelines.reconciliation import Books, ReconciliationOutcome, reconcile
from pipelines.sources.logs.queue_ranges import consumer_offsets, decided_without_record
from pipelines.sources.reading import Reading
from rocketmq_broker.client import LocalTransactionState, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from tests.component.pipelines.conftest import ShopDatabases
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.foreign.apache.cluster import apache_rocketmq
from tests.unit.pipelines.log_writer import order_body
from tests.waiting import until, wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
COMMIT, ROLLBACK, _ = LocalTransactionState
ROUTE = Route()
LONG_AGO_MS = 1_700_000_000_000
ORDERS = ("fine", "uncredited", "miscredited", "deleted")
REFUSED = "refused"
"""Its local transaction is rolled back."""
PATIENCE_S = 60
PATIENT_MS = "600000"


class Answers:
    """A transaction listener that returns the sender's decision, and records the transaction id of each order."""

    def __init__(self) -> None:
        self.transaction_ids: dict[str, str] = {}

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        assert isinstance(arg, LocalTransactionState)
        self.transaction_ids[message.keys[0]] = str(message.transaction_id)
        return arg

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return ROLLBACK if REFUSED in message.keys else COMMIT


async def play(namesrv_addr: str) -> dict[str, str]:
    """Sends the orders' messages, rolls one back, and consumes the delivered ones. Returns the transaction ids by order."""
    inbox, answers = Inbox(), Answers()
    async with (
        running(TransactionProducer("order_service", answers, namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        running(consumer(namesrv_addr, ROUTE.consumer_group, ROUTE.topic, inbox)),
    ):
        for order_id, decision in [(order_id, COMMIT) for order_id in ORDERS] + [(REFUSED, ROLLBACK)]:
            message = Message.of(ROUTE.topic, order_body(order_id, LONG_AGO_MS), keys=[order_id], tags="created")
            await producer.send_message_in_transaction(message, decision)
        await until(lambda: len(inbox.messages) == len(ORDERS), PATIENCE_S)
    return answers.transaction_ids


def has_told_all(address: str, *, shows_op_messages: bool) -> bool:
    """Returns True if the broker has all consumer offsets.

    A broker that hides its op messages must also have processed all half messages.
    """
    consumed = consumer_offsets(address, ROUTE.consumer_group, ROUTE.topic) or {}
    is_decided = shows_op_messages or len(decided_without_record(address)) >= len(ORDERS) + 1
    return sum(consumed.values()) == len(ORDERS) and is_decided


def fine_shop(folder: Path) -> ShopDatabases:
    """Creates databases that are consistent with the history."""
    folder.mkdir()
    shop = ShopDatabases(folder)
    shop.add_orders(list(ORDERS), at_ms=LONG_AGO_MS)
    shop.add_credits(list(ORDERS), at_ms=LONG_AGO_MS)
    return shop


def broken_shop(folder: Path) -> ShopDatabases:
    """Creates databases that are inconsistent with the history, with a fault in each of five orders."""
    shop = fine_shop(folder)
    shop.add_orders([REFUSED, "unannounced"], at_ms=LONG_AGO_MS)
    shop.add_credits(["unannounced"], at_ms=LONG_AGO_MS)
    for table in ("orders", "order_items"):
        shop.orders.execute(f"DELETE FROM {table} WHERE order_id = 'deleted'")
    shop.credits.execute("DELETE FROM credits WHERE order_id = 'uncredited'")
    shop.credits.execute("UPDATE credits SET amount_cents = 1251 WHERE order_id = 'miscredited'")
    shop.credits.execute("UPDATE balances SET points = points - 12")
    shop.credits.commit()
    shop.orders.commit()
    return shop


@dataclass(frozen=True)
class Shops:
    """Two pairs of databases for the same history: one is consistent, the other is inconsistent."""

    fine: ShopDatabases
    broken: ShopDatabases

    def name_transactions(self, transaction_ids: Mapping[str, str]) -> None:
        """Sets the transaction ids of the rows to those of the messages."""
        for shop in (self.fine, self.broken):
            for database, table in ((shop.orders, "transactions"), (shop.credits, "credits")):
                named = [(transaction_id, order_id) for order_id, transaction_id in transaction_ids.items()]
                database.executemany(f"UPDATE {table} SET transaction_id = ? WHERE order_id = ?", named)
            shop.credits.execute("UPDATE credits SET message_id = transaction_id")
            shop.credits.commit()
            shop.orders.commit()


BROKEN = {
    "uncredited": (Finding.MISSING_CREDIT, Cause.CONSUMED),
    "miscredited": (Finding.AMOUNT_MISMATCH, Cause.LEDGER),
    "deleted": (Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST),
    REFUSED: (Finding.MISSING_CREDIT, Cause.ROLLED_BACK),
    "unannounced": (Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE),
}


def judged(spark: SparkSession, books: Books, output: Path) -> ReconciliationOutcome:
    cut_off = CutOff(time.time_ns() // 1_000_000, grace_seconds=0)
    return reconcile(Reading(spark, True), books, cut_off, str(output))


def assert_both_verdicts(spark: SparkSession, shops: Shops, output: Path, *stores: Path, brokers: Sequence[str] = ()) -> None:
    fine = judged(spark, shops.fine.books(*stores, brokers=brokers), output)
    counts = {total.finding: total.count for total in fine.totals if total.count}
    assert counts == {Finding.MATCHED: len(ORDERS), Finding.ROLLED_BACK: 1}
    assert Tolerance().is_consistent(fine.totals)
    broken = judged(spark, shops.broken.books(*stores, brokers=brokers), output)
    found = {row["order_id"]: (row["finding"], row["cause"]) for row in broken.rows if row["finding"] not in SUMMED}
    assert found == BROKEN


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[Shops]:
    shops = Shops(fine_shop(tmp_path / "fine"), broken_shop(tmp_path / "broken"))
    yield shops
    shops.fine.close()
    shops.broken.close()


@dataclass(frozen=True)
class Serving:
    """A running broker."""

    namesrv_addr: str
    address: str
    store: Path


@contextmanager
def serving(owner: str, start_broker: Callable[..., BrokerProcess], home: Path) -> Iterator[Serving]:
    """Runs Apache's broker or this project's broker.

    No transaction becomes old enough for a check-back. Otherwise Apache's broker could deliver a message twice: after
    COMMIT, and after a response to a check-back that was sent at the same time.
    """
    if owner == "ours":
        broker = start_broker({"transactionTimeOut": PATIENT_MS})
        yield Serving(broker.namesrv_addr, broker.address, broker.store)
        broker.process.stop()
        return
    (port,) = free_ports(1)
    settings = {"BROKER_PORT": str(port), "TRANSACTION_TIMEOUT_MS": PATIENT_MS, "CHECK_INTERVAL_MS": "1000"}
    with apache_rocketmq(home, settings=settings, is_store_needed=True) as namesrv_addr:
        yield Serving(namesrv_addr, f"127.0.0.1:{port}", home / "store")


@pytest.mark.parametrize("owner", ["ours", pytest.param("apache", marks=pytest.mark.java)])
def test_one_history_has_one_verdict(
    spark: SparkSession, shops: Shops, start_broker: Callable[..., BrokerProcess], tmp_path: Path, owner: str
) -> None:
    """The reconciliation finds the five faults with class and cause, and nothing else, for either broker."""
    with serving(owner, start_broker, tmp_path / "apache") as broker:
        shops.name_transactions(asyncio.run(play(broker.namesrv_addr)))
        wait_until(lambda: has_told_all(broker.address, shows_op_messages=owner == "ours"))
        assert_both_verdicts(spark, shops, tmp_path / "pulled", brokers=(broker.address,))
    assert_both_verdicts(spark, shops, tmp_path / "stored", broker.store)
