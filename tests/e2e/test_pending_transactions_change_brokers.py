"""A store with pending transactions goes from Apache's broker to ours, or back: one outcome for each, whoever asks."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.client import LocalTransactionState, TransactionProducer
from broker.message import Message, MessageExt
from tests.apache.cluster import apache_rocketmq
from tests.conftest import BrokerProcess
from tests.e2e.clients import Inbox, consumer, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow]
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState

PEER_SETTINGS = {"TRANSACTION_TIMEOUT_MS": "1000", "CHECK_INTERVAL_MS": "1000"}
SAID_AT_ONCE = {"committed": COMMIT, "rolled back": ROLLBACK}
PENDING = [f"pending {number}" for number in range(5)]
"""The even ones are committed in the end, the odd ones rolled back."""
TO_BE_DELIVERED = ["committed", *PENDING[::2]]


class Undecided:
    """Knows only what was said at once, until it is told to decide."""

    def __init__(self) -> None:
        self.decides = False
        self.checked: list[str] = []

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return SAID_AT_ONCE.get(message.body.decode(), UNKNOWN)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        body = message.body.decode()
        self.checked.append(body)
        if not self.decides:
            return UNKNOWN
        return COMMIT if body in TO_BE_DELIVERED else ROLLBACK


async def leave_transactions_pending(namesrv_addr: str) -> None:
    """Sends, and has each pending one checked at least once without a decision."""
    listener = Undecided()
    async with running(TransactionProducer("orders", listener, namesrv_addr=namesrv_addr)) as producer:
        for body in [*SAID_AT_ONCE, *PENDING]:
            await producer.send_message_in_transaction(Message.of("orders", body.encode(), keys=[body.replace(" ", "-")]))
        await until(lambda: set(PENDING) <= set(listener.checked))
        await asyncio.sleep(2.5)  # Apache answers checks by further copies


async def decide_what_is_pending(namesrv_addr: str) -> None:
    """Answers check-backs, and waits long enough for a second delivery to show."""
    listener, inbox = Undecided(), Inbox()
    listener.decides = True
    async with (
        running(TransactionProducer("orders", listener, namesrv_addr=namesrv_addr)),
        running(consumer(namesrv_addr, "credits", "orders", inbox)),
    ):
        await until(lambda: set(TO_BE_DELIVERED) <= set(inbox.bodies))
        await asyncio.sleep(5)
    assert sorted(inbox.bodies) == sorted(TO_BE_DELIVERED)
    assert set(listener.checked) == set(PENDING)


def settings_for(store: Path) -> dict[str, str]:
    """Apache's sizes, so that either broker can go on with the other's files."""
    return {
        "storePathRootDir": str(store),
        "mapedFileSizeCommitLog": str(1 << 30),
        "transactionTimeOut": "1000",
        "transactionCheckInterval": "1000",
    }


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
async def test_our_broker_finishes_what_is_pending_on_apaches(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, is_killed: bool
) -> None:
    store = tmp_path / "store"
    with apache_rocketmq(tmp_path / "apache", settings={**PEER_SETTINGS, "STORE": str(store)}) as apache:
        await leave_transactions_pending(apache)
        if is_killed:
            os.kill(int((tmp_path / "apache" / "broker.pid").read_text()), signal.SIGKILL)

    await decide_what_is_pending(start_broker(settings_for(store)).namesrv_addr)


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
async def test_apaches_broker_finishes_what_is_pending_on_ours(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path, is_killed: bool
) -> None:
    store = tmp_path / "store"
    broker = start_broker(settings_for(store))
    await leave_transactions_pending(broker.namesrv_addr)
    if is_killed:
        broker.process.kill()
    else:
        broker.process.stop()

    with apache_rocketmq(tmp_path / "apache", settings={**PEER_SETTINGS, "STORE": str(store)}) as apache:
        await decide_what_is_pending(apache)
