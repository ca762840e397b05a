"""Tests that a broker with a damaged store starts, logs its actions clearly, and serves all intact messages."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.client import LocalTransactionState, Producer, PullConsumer, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, running

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState

TOPIC = "orders"
MESSAGES = 60
A_BODY = b"x" * 4_000  # not so long that the client compresses it
SEGMENT_SIZE = 1 << 16
SETTINGS = {
    "mapedFileSizeCommitLog": str(SEGMENT_SIZE),
    "maxMessageSize": "16000",
    "mapedFileSizeConsumeQueue": str(20 * 100),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "10000",
}


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def flip_a_byte(store: Path) -> None:
    """Changes a byte in the body of a message in the middle of the log."""
    path = sorted((store / "commitlog").iterdir())[2]
    content = path.read_bytes()
    position = content.index(A_BODY) + 100
    overwrite(path, position, b"y")


def forget_how_far_it_was_read(store: Path) -> None:
    """Changes the store as if the broker had crashed before it saved any progress."""
    (store / "abort").touch()
    (store / "progress.json").unlink()
    (store / "checkpoint").unlink()


class Books:
    """A transaction listener that returns UNKNOWN for the local transaction and `outcome` at a check-back."""

    def __init__(self, outcome: LocalTransactionState) -> None:
        self.checked: list[bytes] = []
        self._outcome = outcome

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message.body)
        return self._outcome


async def fill(namesrv_addr: str) -> None:
    """Sends messages to two queues, and a message in a pending transaction."""
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        running(TransactionProducer("transactions", Books(UNKNOWN), namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
    ):
        await producer.create_topic(TOPIC, 2)
        queues = sorted(await producer.queues(TOPIC))
        for number in range(MESSAGES):
            await producer.send(Message.of(TOPIC, b"%02d " % number + A_BODY, keys=[f"key-{number}"]), queues[number % 2])
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"pending"))


async def stored(namesrv_addr: str) -> list[bytes]:
    bodies = []
    pull = PullConsumer("auditors", namesrv_addr=namesrv_addr)
    async with running(pull):
        for queue in await pull.queues(TOPIC):
            offset, end = 0, await pull.max_offset(queue)
            while offset < end:
                pulled = await pull.pull(queue, offset)
                bodies += [message.body for message in pulled.messages]
                assert pulled.next_offset > offset
                offset = pulled.next_offset
    return bodies


async def test_a_broker_on_a_damaged_store_serves_what_is_intact(start_broker: Callable[..., BrokerProcess]) -> None:
    broker, books = start_broker(SETTINGS), Books(COMMIT)
    namesrv_addr = broker.namesrv_addr
    await fill(namesrv_addr)
    everything = sorted([b"%02d " % number + A_BODY for number in range(MESSAGES)])
    broker.process.stop(timeout_s=60)
    flip_a_byte(broker.store)
    forget_how_far_it_was_read(broker.store)

    broker.process.start()

    assert "the records after them are intact" in broker.process.output()
    assert "Traceback" not in broker.process.output()
    found = await stored(namesrv_addr)
    assert len(found) == len(set(found)) == MESSAGES - 1
    assert set(found) <= set(everything)
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        running(TransactionProducer("transactions", books, namesrv_addr=namesrv_addr, **PATIENT)),
    ):
        for queue in await producer.queues(TOPIC):
            sent = await producer.send(Message.of(TOPIC, b"one more"), queue)
            assert sent.queue_offset >= MESSAGES // 2
        async with asyncio.timeout(60):
            while b"pending" not in await stored(namesrv_addr):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.05)
    assert set(books.checked) == {b"pending"}
    broker.process.stop(timeout_s=60)
    broker.process.start()
    assert "recovery" not in broker.process.output()
    assert sorted(await stored(namesrv_addr)) == sorted([*found, b"one more", b"one more", b"pending"])
