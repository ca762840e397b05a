"""A damaged store under a whole broker: it starts, says in plain words what it did, and serves everything that is not damaged."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
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


def last_written(store: Path) -> tuple[Path, int]:
    """The commit log's last segment with anything in it, and how much of it is written."""
    for path in sorted((store / "commitlog").iterdir(), reverse=True):
        written = len(path.read_bytes().rstrip(b"\0"))
        if written:
            return path, written
    raise AssertionError("nothing was written")


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def tear_the_tail(store: Path) -> None:
    """Half of a record more than there was: it was never acknowledged."""
    path, written = last_written(store)
    first_segment = sorted((store / "commitlog").iterdir())[0].read_bytes()
    overwrite(path, written, first_segment[:300])
    (store / "abort").touch()


def flip_a_byte(store: Path) -> None:
    """In the body of one message in the middle."""
    path = sorted((store / "commitlog").iterdir())[2]
    content = path.read_bytes()
    position = content.index(A_BODY) + 100
    overwrite(path, position, b"y")


def flip_a_byte_and_crash(store: Path) -> None:
    """And nothing tells how far the log was read before."""
    flip_a_byte(store)
    (store / "abort").touch()
    (store / "progress.json").unlink()
    (store / "checkpoint").unlink()


def remove_a_consume_queue(store: Path) -> None:
    shutil.rmtree(store / "consumequeue" / TOPIC / "1")


def remove_all_consume_queues(store: Path) -> None:
    shutil.rmtree(store / "consumequeue")


def remove_the_index(store: Path) -> None:
    shutil.rmtree(store / "index")


def empty_small_files(store: Path) -> None:
    """As a file system may leave them that was not given time to write."""
    topics = store / "config" / "topics.json"
    for path in (store / "checkpoint", store / "progress.json", topics, topics.with_suffix(".json.bak")):
        path.write_bytes(b"")
    (store / "abort").touch()


def empty_a_consume_queue_file(store: Path) -> None:
    sorted((store / "consumequeue" / TOPIC / "0").iterdir())[-1].write_bytes(b"")


def empty_the_index_file(store: Path) -> None:
    next((store / "index").iterdir()).write_bytes(b"")


def add_an_empty_segment(store: Path) -> None:
    """The broker died between creating it and giving it its size."""
    last = sorted((store / "commitlog").iterdir())[-1]
    (store / "commitlog" / f"{int(last.name) + SEGMENT_SIZE:020d}").write_bytes(b"")
    (store / "abort").touch()


@dataclass(frozen=True, slots=True)
class Case:
    """What is done to a store that was stopped cleanly, and what comes of it."""

    damage: Callable[[Path], None]
    said: str = ""
    lost: int = 0


CASES = (
    Case(tear_the_tail, said="the commit log was torn: what came after"),
    Case(flip_a_byte, lost=1),
    Case(flip_a_byte_and_crash, said="are damaged and were passed over; what follows is intact", lost=1),
    Case(remove_a_consume_queue, said=f"consume queue {TOPIC}/1 lacks messages it had: rebuilt from the commit log"),
    Case(remove_all_consume_queues, said="there are no consume queues: they are rebuilt from the commit log"),
    Case(remove_the_index, said="there is no index: it is rebuilt from the commit log"),
    Case(empty_small_files, said=f"topics without settings were found in the store, and got default ones: {TOPIC}"),
    Case(empty_a_consume_queue_file, said="had 0 bytes and was given its full size"),
    Case(empty_the_index_file, said="there is no index: it is rebuilt from the commit log"),
    Case(add_an_empty_segment, said="had 0 bytes and was given its full size"),
)


class Books:
    """Knows the outcome only when it is asked, if then."""

    def __init__(self, outcome: LocalTransactionState) -> None:
        self.checked: list[bytes] = []
        self._outcome = outcome

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message.body)
        return self._outcome


async def fill(namesrv_addr: str) -> None:
    """Two queues of messages, and a pending transaction."""
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.damage.__name__)
async def test_a_broker_on_a_damaged_store_serves_what_is_intact(start_broker: Callable[..., BrokerProcess], case: Case) -> None:
    broker, books = start_broker(SETTINGS), Books(COMMIT)
    namesrv_addr = broker.namesrv_addr
    await fill(namesrv_addr)
    everything = sorted([b"%02d " % number + A_BODY for number in range(MESSAGES)])
    broker.process.stop(timeout_s=60)
    case.damage(broker.store)

    broker.process.start()

    assert case.said in broker.process.output()
    assert "Traceback" not in broker.process.output()
    found = await stored(namesrv_addr)
    assert len(found) == len(set(found)) == MESSAGES - case.lost
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
                await asyncio.sleep(0.2)
    assert set(books.checked) == {b"pending"}
    broker.process.stop(timeout_s=60)
    broker.process.start()
    assert "recovery" not in broker.process.output()
    assert sorted(await stored(namesrv_addr)) == sorted([*found, b"one more", b"one more", b"pending"])
