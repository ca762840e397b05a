"""Tests that a store can be moved between Apache's broker and this one without lost or duplicated messages."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from demo.processes import Processes
from rocketmq_broker.client import LocalTransactionState, Producer, PullConsumer, TransactionProducer
from rocketmq_broker.message import Message, MessageExt, MessageQueue
from rocketmq_broker.store import ConsumerOffsets
from tests.e2e.clients import Inbox, consumer, running, until_there_are
from tests.foreign.apache.places import Place, Running
from tests.foreign.clients.mqadmin import comparable as mqadmin_text
from tests.foreign.clients.mqadmin.scenario import Place as MqadminPlace
from tests.foreign.clients.mqadmin.session import Mqadmin
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1500)]
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState

PLAIN, ORDERS, LATER, FILED = "plain", "orders", "later", "filed"
READERS = "readers"
QUEUES = 4
PLAIN_MESSAGES = 24
READ_MESSAGES = 9
DELAY_LEVEL, DELAY_MS = 2, 5000
RECOVERED_DELAY_MS = 1000
"""What Apache gives a delayed message whose place in the queue it restores after a kill: it knows no levels by then."""
SOON_LEVEL = 1
PATIENCE_S = 120
A_LONG_BODY = b"compressed by the client " * 400
TELLING = {
    "topic status": f"topicStatus -t {PLAIN}",
    "topic route": f"topicRoute -t {FILED}",
    "consumer progress": f"consumerProgress -g {READERS}",
    "consumer group": f"getConsumerConfig -g {READERS}",
    "message by key": f"queryMsgByKey -t {PLAIN} -k key-3",
    "messages by a key of many": f"queryMsgByKey -t {PLAIN} -k shared",
    "consume queue": f"queryCq -t {PLAIN} -q 1 -i 0 -c 3 -b {{broker}}",
    "all messages": f"printMsg -t {PLAIN}",
    "committed messages": f"printMsg -t {ORDERS}",
}
"""What mqadmin is asked under the one broker and under the other."""


@dataclass(slots=True)
class Books:
    """The states of the transactions by message body, shared by all producers of the group."""

    states: dict[str, LocalTransactionState] = field(default_factory=dict)
    is_open: bool = False
    """Whether a check-back is answered by more than UNKNOWN."""
    checked: Counter[str] = field(default_factory=Counter)

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Returns the state if `arg` is "decide", otherwise UNKNOWN."""
        body = message.body.decode()
        return self.states[body] if arg == "decide" else UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the state if `is_open` is True, otherwise UNKNOWN."""
        body = message.body.decode()
        self.checked[body] += 1
        return self.states[body] if self.is_open else UNKNOWN

    def bodies(self, state: LocalTransactionState) -> list[str]:
        """Returns the bodies of the transactions that end in this state."""
        return sorted(body for body, known in self.states.items() if known is state)


@dataclass(slots=True)
class Left:
    """The content of the store when a broker stops."""

    messages: dict[MessageQueue, list[MessageExt]]
    read_offsets: dict[MessageQueue, int | None]
    unread: list[str]
    later: list[str]
    pending: list[str]
    told: Mapping[str, str]


async def leave(place: Place, broker: Running, books: Books) -> Left:
    """Fills the store with plain, delayed, committed, rolled-back and pending messages. A group has read some of them."""
    pull = PullConsumer(READERS, namesrv_addr=broker.namesrv_addr)
    async with (
        running(Producer("plain_producers", namesrv_addr=broker.namesrv_addr)) as producer,
        running(TransactionProducer("order_producers", books, namesrv_addr=broker.namesrv_addr)) as orders,
        running(pull),
    ):
        await send_plain(producer)
        await producer.send(Message.of(LATER, b"soon", delay_time_level=SOON_LEVEL))
        unread = await read_some(pull)
        await transact(orders, books, "committed", COMMIT, count=3, arg="decide")
        await transact(orders, books, "rolled back", ROLLBACK, count=2, arg="decide")
        checked = await transact(orders, books, "checked, to commit", COMMIT, count=2)
        checked += await transact(orders, books, "checked, to roll back", ROLLBACK, count=2)
        await until(lambda: set(checked) <= set(books.checked), PATIENCE_S)
        await until_all_is_committed(pull, books)
        await until_there_are(pull, LATER, 1, PATIENCE_S)
        told = ask_mqadmin(broker, place)
        read_offsets = {queue: await pull.committed(queue) for queue in await pull.queues(PLAIN)}
        await until(lambda: are_on_disk(read_offsets, place.store), PATIENCE_S)
        fresh = await transact(orders, books, "fresh, to commit", COMMIT, count=2)
        fresh += await transact(orders, books, "fresh, to roll back", ROLLBACK, count=2)
        later = [f"later {number}" for number in range(3)]
        for body in later:
            await producer.send(Message.of(LATER, body.encode(), keys=[body.replace(" ", "-")], delay_time_level=DELAY_LEVEL))
        messages = {queue: await pull_all(pull, queue) for topic in (PLAIN, ORDERS) for queue in await pull.queues(topic)}
    return Left(messages, read_offsets, unread, later, checked + fresh, told)


async def take_over(place: Place, broker: Running, books: Books, left: Left, *, is_apache_after_a_kill: bool) -> None:
    """Checks that the broker that now uses the store has all messages, and that consumers and transactions continue."""
    assert ask_mqadmin(broker, place) == left.told
    books.checked.clear()
    books.is_open = True
    orders_inbox, later_inbox, readers_inbox = Inbox(), Inbox(), Inbox()
    namesrv_addr = broker.namesrv_addr
    pull, reader = PullConsumer("auditors", namesrv_addr=namesrv_addr), PullConsumer(READERS, namesrv_addr=namesrv_addr)
    async with running(reader):
        assert {queue: await reader.committed(queue) for queue in left.read_offsets} == left.read_offsets
    async with running(pull):
        for queue, messages in left.messages.items():
            assert await pull_all(pull, queue) == messages
        async with (
            running(TransactionProducer("order_producers", books, namesrv_addr=namesrv_addr)),
            running(consumer(namesrv_addr, "credits", ORDERS, orders_inbox)),
            running(consumer(namesrv_addr, "late_readers", LATER, later_inbox)),
            running(consumer(namesrv_addr, READERS, PLAIN, readers_inbox)),
            running(Producer("plain_producers", namesrv_addr=namesrv_addr)) as producer,
        ):
            await until(lambda: set(books.bodies(COMMIT)) <= set(orders_inbox.bodies), PATIENCE_S)
            await until(lambda: set(left.later) <= set(later_inbox.bodies), PATIENCE_S)
            await until(lambda: set(left.unread) <= set(readers_inbox.bodies), PATIENCE_S)
            await until(lambda: set(left.pending) <= set(books.checked), PATIENCE_S)
            await asyncio.sleep(4)  # long enough for a second delivery to show
            await assert_offsets_go_on(pull, producer, left)
    assert sorted(orders_inbox.bodies) == books.bodies(COMMIT)
    assert sorted(body for body in later_inbox.bodies if body != "soon") == left.later
    delay_ms = RECOVERED_DELAY_MS if is_apache_after_a_kill else DELAY_MS
    assert min(waited_ms(message) for message in later_inbox.messages if message.body != b"soon") >= delay_ms - 100
    # Apache notes every 10 s how far it has delivered, and after a kill delivers once more what came since.
    assert later_inbox.bodies.count("soon") == 1 or is_apache_after_a_kill
    assert sorted(body for body in readers_inbox.bodies if body != "one more") == sorted(left.unread)
    assert set(books.checked) == set(left.pending)


async def send_plain(producer: Producer) -> None:
    await producer.create_topic(PLAIN, QUEUES)
    await producer.create_topic(FILED, 3)
    queues = sorted(await producer.queues(PLAIN))
    for number in range(PLAIN_MESSAGES - 4):
        message = Message.of(
            PLAIN,
            f"plain {number}".encode(),
            tags="odd" if number % 2 else "even",
            keys=(f"key-{number}", "shared"),
            user_properties={"n": str(number)},
            flag=number,
        )
        await producer.send(message, queues[number % QUEUES])
    await producer.send(Message.of(PLAIN, A_LONG_BODY, keys=("long",)), queues[0])
    await producer.send_batch([Message.of(PLAIN, f"batch {number}".encode()) for number in range(3)], queues[1])


async def read_some(pull: PullConsumer) -> list[str]:
    """Reads and commits some messages. Returns the bodies of the remaining messages."""
    queues = await pull.queues(PLAIN)
    pull.assign(queues)
    read: list[MessageExt] = []
    while len(read) < READ_MESSAGES:
        read += await pull.poll(max_messages=1)
    await pull.commit()
    pull.assign([])
    seen = {(message.queue_id, message.queue_offset) for message in read}
    everything = [message for queue in queues for message in await pull_all(pull, queue)]
    return [message.body.decode() for message in everything if (message.queue_id, message.queue_offset) not in seen]


async def transact(
    producer: TransactionProducer, books: Books, name: str, state: LocalTransactionState, *, count: int, arg: object = None
) -> list[str]:
    """Starts transactions that end in `state`, at once or at a check-back. Returns their bodies."""
    bodies = [f"{name} {number}" for number in range(count)]
    for body in bodies:
        books.states[body] = state
        await producer.send_message_in_transaction(Message.of(ORDERS, body.encode(), keys=[body.replace(" ", "-")]), arg)
    return bodies


async def pull_all(pull: PullConsumer, queue: MessageQueue) -> list[MessageExt]:
    messages: list[MessageExt] = []
    end = await pull.max_offset(queue)
    while len(messages) < end:
        pulled = await pull.pull(queue, len(messages))
        assert pulled.messages, f"{queue} ends at {len(messages)} and not at {end}"
        messages += pulled.messages
    assert [message.queue_offset for message in messages] == list(range(end))
    return messages


async def until_all_is_committed(pull: PullConsumer, books: Books) -> None:
    """Waits until consumers can read the committed messages, because the broker does not confirm a COMMIT."""
    await until_there_are(pull, ORDERS, len([body for body in books.bodies(COMMIT) if body not in books.checked]), PATIENCE_S)


def waited_ms(message: MessageExt) -> int:
    return message.store_timestamp - message.born_timestamp


async def assert_offsets_go_on(pull: PullConsumer, producer: Producer, left: Left) -> None:
    """Checks that a new message gets the next offset of its queue."""
    for queue, messages in left.messages.items():
        if queue.topic == PLAIN:
            sent = await producer.send(Message.of(PLAIN, b"one more"), queue)
            assert sent.queue_offset == len(messages)
            pulled = await pull.pull(queue, len(messages), suspend_ms=5000)
            assert [(message.queue_offset, message.body) for message in pulled.messages] == [(len(messages), b"one more")]


def are_on_disk(read_offsets: Mapping[MessageQueue, int | None], store: Path) -> bool:
    """Returns True if the offsets are on disk. Apache's broker returns 0 for a new unread queue, and stores no offset."""
    offsets = ConsumerOffsets(store / "config")
    offsets.load()
    return all((offsets.get(READERS, PLAIN, queue.queue_id) or 0) == (at or 0) for queue, at in read_offsets.items())


def ask_mqadmin(broker: Running, place: Place) -> dict[str, str]:
    told = {}
    with Mqadmin(broker.namesrv_addr, place.store.parent / "mqadmin") as mqadmin:
        for name, command in TELLING.items():
            words = command.format(broker=broker.broker_addr).split()
            printed = mqadmin.run(*words)
            told[name] = mqadmin_text.comparable(command, printed, MqadminPlace(broker.namesrv_addr, broker.broker_addr))
    return told


@pytest.mark.parametrize(
    "is_killed", [pytest.param(False, id="stopped", marks=pytest.mark.release), pytest.param(True, id="killed")]
)
@pytest.mark.parametrize(("first", "second"), [("apache", "ours"), ("ours", "apache")])
async def test_a_store_goes_on_under_the_other_broker(
    processes: Processes, tmp_path: Path, first: str, second: str, is_killed: bool
) -> None:
    place, books = Place(tmp_path, processes), Books()
    with place.serve(first) as broker:
        left = await leave(place, broker, books)
        if is_killed:
            broker.kill()

    with place.serve(second, is_last=True) as broker:
        await take_over(place, broker, books, left, is_apache_after_a_kill=is_killed and second == "apache")
