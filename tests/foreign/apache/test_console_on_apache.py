"""Tests that the console shows the data of a real Apache RocketMQ, and names data that Apache does not provide."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rocketmq_broker.admin.console import ConsoleSettings, create_console
from rocketmq_broker.admin.session import Target
from rocketmq_broker.client import EventLoopThread, LocalTransactionState, Message, MessageExt, TransactionProducer
from tests.foreign.apache.cluster import apache_rocketmq
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

SCREENS = {
    "/": "It does not count pending transactions",
    "/discarded": "No discarded messages.",
    "/dead-letters": "No dead letters.",
    "/topics": "orders",
    "/topic?topic=orders": "No consumer groups.",
    "/topic/tail?topic=orders": "paid-1",
    "/groups": "No consumer group is online",
    "/clients": "test_shop",
    "/record?offset=0": "MAGICCODE",
}


class Shop:
    """A transaction listener that commits messages with the body `paid`, and otherwise always returns UNKNOWN."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE if message.body == b"paid" else LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Yields a visitor of a console for Apache's broker, which has one committed and one pending transaction."""
    home: Path = tmp_path_factory.mktemp("apache")
    loop = EventLoopThread()
    with apache_rocketmq(home, settings={"CHECK_INTERVAL_MS": "5000", "CHECK_MAX": "1000"}) as namesrv_addr:
        loop.start()
        shop = TransactionProducer("test_shop", Shop(), namesrv_addr=namesrv_addr, send_timeout_ms=60_000)
        loop.run(shop.start(), timeout_s=90)
        for body in ("paid", "unclear"):
            message = Message.of("orders", body.encode(), keys=[f"{body}-1"])
            loop.run(shop.send_message_in_transaction(message), timeout_s=90)
        with TestClient(create_console(ConsoleSettings(), Target(namesrv_addr)), base_url=PAGE_OF_CONSOLE) as client:
            yield Visitor(client)
        loop.run(shop.shutdown(), timeout_s=90)
        loop.stop()


def wait_until_seen(look: Callable[[], str], text: str) -> str:
    """Repeats `look` until the text appears, because the index and the heartbeats of Apache's broker are delayed."""
    deadline = time.monotonic() + 120
    while text not in (seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)
    return seen


@pytest.mark.parametrize("path", SCREENS)
def test_a_screen_shows_what_apache_can_tell(path: str, visitor: Visitor) -> None:
    wait_until_seen(lambda: visitor.sees(path), SCREENS[path])


def test_pending_transactions_are_read_off_queue_and_index(visitor: Visitor) -> None:
    assert "Apache's brokers do not report which transactions are pending" in visitor.sees("/pending")
    seen = wait_until_seen(lambda: visitor.sees("/pending"), "unclear-1")  # not before the broker's own first look
    assert "1 online" in seen
    wait_until_seen(lambda: "decided" if "paid-1" not in visitor.sees("/pending") else "", "decided")  # COMMIT is one-way


def test_a_committed_transaction_has_its_timeline(visitor: Visitor) -> None:
    seen = wait_until_seen(lambda: visitor.sees("/transaction?word=" + transaction_id(visitor)), "committed")
    assert "message visible in queue" in seen


def test_what_apache_cannot_tell_is_said_in_a_sentence(visitor: Visitor) -> None:
    seen = visitor.sees("/decided", 501)
    assert "does not support this request" in seen
    assert "it is not part of Apache RocketMQ" in seen


def transaction_id(visitor: Visitor) -> str:
    """Returns the id of the committed transaction."""
    wait_until_seen(lambda: visitor.sees("/messages?word=paid-1&topic=orders"), "UNIQ_KEY")
    return visitor.sees("/messages?word=paid-1&topic=orders").partition("UNIQ_KEY ")[2].partition(" ")[0]
