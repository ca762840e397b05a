"""Kills the broker under load with SIGKILL, 50 times. No acknowledged message is lost, and each transaction has one outcome."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import ClientError, LocalTransactionState, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.properties import UNIQUE_KEY, find
from rocketmq_broker.message.record import Record, decode_record, host_bytes
from rocketmq_broker.message.topics import HALF_TOPIC, OP_HALF_TOPIC
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.store import MessageStore, StoreConfig
from tests.conftest import BrokerProcess
from tests.e2e.clients import running

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState

KILLS = 50
KILLED_WHILE_STARTING_EVERY = 7
SENDERS = 8
PAUSE_S = 0.01
"""Between two transactions of a sender: what counts is how often the broker is killed, not how much there is to read again."""
TOPIC = "orders"
SEGMENT_SIZE = 1 << 20
UNITS_PER_FILE = 500
SETTINGS = {
    "flushDiskType": "SYNC_FLUSH",
    "mapedFileSizeCommitLog": str(SEGMENT_SIZE),
    "mapedFileSizeConsumeQueue": str(UNITS_PER_FILE * 20),
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "500",
    "transactionCheckMax": "1000",
}


class Books:
    """The producer's database. The first call that decides a transaction wins, as with a barrier row."""

    def __init__(self) -> None:
        self.states: dict[str, LocalTransactionState] = {}
        self._random = random.Random(1)
        self._lock = threading.Lock()

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Decides the transaction. Returns the decision, or UNKNOWN so that the broker checks back."""
        state = self._decide(message.transaction_id, self._random.choice((COMMIT, ROLLBACK)))
        return self._random.choice((state, state, UNKNOWN))

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision. A transaction without one is rolled back."""
        return self._decide(message.transaction_id, ROLLBACK)

    def committed(self) -> set[str]:
        """Returns the transactions that must be delivered."""
        return {transaction_id for transaction_id, state in self.states.items() if state is COMMIT}

    def _decide(self, transaction_id: str | None, state: LocalTransactionState) -> LocalTransactionState:
        assert transaction_id is not None
        with self._lock:
            return self.states.setdefault(transaction_id, state)


class Load:
    """A load of transactions, which are sent even while the broker is down."""

    def __init__(self, producer: TransactionProducer) -> None:
        self.acknowledged: list[str] = []
        self.refused = 0
        self._producer = producer
        self._is_over = False

    async def run(self) -> None:
        """Sends transactions until `end` is called."""
        await asyncio.gather(*(self._send(number) for number in range(SENDERS)))

    def end(self) -> None:
        """Stops sending after the current transactions."""
        self._is_over = True

    async def _send(self, number: int) -> None:
        body = b"%d" % number * 700
        while not self._is_over:
            try:
                sent = await self._producer.send_message_in_transaction(Message.of(TOPIC, body, keys=[f"sender-{number}"]))
            except ClientError:
                self.refused += 1
            else:
                self.acknowledged.append(sent.message_id)
            await asyncio.sleep(PAUSE_S)


async def kill_again_and_again(broker: BrokerProcess) -> None:
    moment = random.Random(2)
    for kill in range(KILLS):
        if kill % KILLED_WHILE_STARTING_EVERY == 0:
            await asyncio.sleep(moment.uniform(0.2, 0.8))
        else:
            await asyncio.to_thread(broker.process.wait_until_ready)
            await asyncio.sleep(moment.uniform(0.05, 1))
        broker.process.kill()
        broker.process.spawn()
    await asyncio.to_thread(broker.process.wait_until_ready)


async def max_offset(address: str, topic: str) -> int:
    client = RemotingClient()
    header = GetMaxOffsetRequestHeader(topic=topic, queue_id=0)
    answer = await client.invoke(address, RequestCode.GET_MAX_OFFSET, header, timeout_ms=30_000)
    await client.close()
    return answer.decode_header(GetMaxOffsetResponseHeader).offset


async def until_nothing_is_pending(address: str) -> None:
    async with asyncio.timeout(180):
        while await max_offset(address, OP_HALF_TOPIC) < await max_offset(address, HALF_TOPIC):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.1)


def records(store: MessageStore, topic: str) -> Iterator[Record]:
    """Yields all messages of a topic, and checks that no queue has a gap."""
    for queue_id in store.queues()[topic.encode()]:
        end = store.max_offset(topic.encode(), queue_id)
        for expected, record in enumerate(queue_records(store, topic.encode(), queue_id, end)):
            assert (record.topic, record.queue_id, record.queue_offset) == (topic.encode(), queue_id, expected)
            yield record


def queue_records(store: MessageStore, topic: bytes, queue_id: int, end: int) -> Iterator[Record]:
    offset = 0
    while offset < end:
        found = store.pull(topic, queue_id, offset, 1000, 1 << 24).records
        assert found, f"{topic!r}/{queue_id} has no message at {offset}"
        yield from map(decode_record, found)
        offset += len(found)


def unique_id(record: Record) -> str:
    found = find(record.properties, UNIQUE_KEY)
    assert found is not None
    return found


@pytest.mark.timeout(1500)
async def test_fifty_kills_lose_nothing_and_double_nothing(start_broker: Callable[..., BrokerProcess]) -> None:
    broker, books = start_broker(SETTINGS), Books()
    async with running(TransactionProducer("order_service", books, namesrv_addr=broker.namesrv_addr)) as producer:
        load = Load(producer)
        sending = asyncio.create_task(load.run())
        await kill_again_and_again(broker)
        await asyncio.sleep(1)
        load.end()
        await sending
        await until_nothing_is_pending(broker.address)
    broker.process.stop()

    print(f"{KILLS} kills, {len(load.acknowledged)} transactions acknowledged, {load.refused} sends failed")
    assert load.refused
    check_store(broker.store, books, load)


def check_store(root: Path, books: Books, load: Load) -> None:
    config = StoreConfig(
        root=root,
        store_host=host_bytes("127.0.0.1", 10911),
        commit_log_segment_size=SEGMENT_SIZE,
        consume_queue_units_per_file=UNITS_PER_FILE,
    )
    store = MessageStore.open(config)
    assert not store.recovery.actions
    half_ids = {unique_id(record) for record in records(store, HALF_TOPIC)}
    closed = Counter(int(record.body) for record in records(store, OP_HALF_TOPIC))
    delivered = Counter(unique_id(record) for record in records(store, TOPIC))
    half_messages = store.max_offset(HALF_TOPIC.encode(), 0)
    store.close()

    assert set(load.acknowledged) <= half_ids
    assert half_ids <= books.states.keys()
    assert closed == Counter(range(half_messages))
    assert delivered == Counter(books.committed() & half_ids)
    assert books.committed() & set(load.acknowledged) <= delivered.keys()
