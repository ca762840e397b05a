"""A broker without sockets: a real store in a temporary folder, and connections that keep the sent frames."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import Record, decode_records, host_bytes
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import Answerable, RemotingCommand, encode_request, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.server.clients.client_processor import ClientProcessor
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.server.pulling.held_pulls import HeldPulls
from rocketmq_broker.server.pulling.pull_processor import PullProcessor
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.sending.send_back_processor import SendBackProcessor
from rocketmq_broker.server.sending.send_processor import SendDestination, SendProcessor
from rocketmq_broker.server.statistics.message_flows import MessageFlows
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicRules, TopicTable
from rocketmq_broker.store import (
    Appended,
    ConsumerOffsets,
    DelayOffsets,
    MessageStore,
    StoreConfig,
    StoreUnwritable,
    SubscriptionGroups,
    TopicConfigs,
)
from tests.unit.server.transaction_broker import Producer, TransactionBroker

START_MS = 1_700_000_000_000
IDENTITY = BrokerIdentity(cluster="DefaultCluster", name="broker-a", broker_id=0, host="127.0.0.1", port=10911)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


class Wire:
    """A replacement for a connection, which keeps the sent frames."""

    must_rest = False

    def __init__(self, peer: str = "127.0.0.1:5555") -> None:
        host, port = peer.split(":")
        self.peer = peer
        self.born_host = host_bytes(host, int(port))
        self.is_writable = True
        self.is_closed = False
        self.answers: list[RemotingCommand] = []
        self.requests: list[tuple[int, CommandHeader | None, bytes]] = []
        self.waiting: list[asyncio.Future[RemotingCommand]] = []
        """Requests that it has not answered, in order."""

    def send(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)

    def invoke_oneway(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> None:
        self.requests.append((code, header, body))

    def start_invoke(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int
    ) -> asyncio.Future[RemotingCommand]:
        self.requests.append((code, header, body))
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]

    def close(self) -> None:
        self.is_closed = True


class CommitAtOnce:
    """A replacement for the group commit. Writes are durable once `settle` has been called after them."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._waiting: list[tuple[int, Wire, bytes]] = []
        self._futures: list[asyncio.Future[None]] = []
        self.is_held_up = False

    def appended(self, messages: int = 1) -> None:
        pass

    def after_durable(
        self, position: int, connection: Wire, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        self._waiting.append((position, connection, encode_response(request, ResponseCode.SUCCESS, header, body)))

    def wait(self, position: int) -> asyncio.Future[None]:
        self._futures.append(asyncio.get_running_loop().create_future())
        return self._futures[-1]

    def settle(self) -> None:
        if self.is_held_up:
            return
        position = self._store.write()
        self._store.mark_flushed(position)
        self._store.publish(position)
        waiting, self._waiting = self._waiting, []
        for _, connection, frame in waiting:
            connection.send(frame)
        futures, self._futures = self._futures, []
        for future in futures:
            future.set_result(None)

    def fail(self, error: StoreUnwritable) -> None:
        """Fails the futures of `wait` with the error."""
        futures, self._futures = self._futures, []
        for future in futures:
            future.set_exception(error)


class NoHalfMessages:
    """A replacement for the transaction processor, which records each message that begins a transaction."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self.begun: list[InnerMessage] = []
        self.producer_groups: list[str] = []

    def prepare(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        self.begun.append(message)
        self.producer_groups.append(producer_group)
        return Appended(4711, 3, self._store.written_position)


class Desk:
    """The processors around one store, which receive requests as frames."""

    def __init__(
        self, root: Path, max_message_size: int = 4 << 20, auto_create: bool = True, property_filter: bool = False
    ) -> None:
        self.clock = Clock()
        config = StoreConfig(
            root=root,
            store_host=IDENTITY.store_host,
            commit_log_segment_size=16 << 20,
            consume_queue_units_per_file=1000,
            index_slots=1000,
            index_entries=4000,
            max_message_size=max_message_size,
        )
        self.store = MessageStore.open(config)
        directory = config.config_directory
        self.commit = CommitAtOnce(self.store)
        self.topics = TopicTable(
            TopicConfigs(directory),
            TopicRules(cluster=IDENTITY.cluster, broker_name=IDENTITY.name, auto_create_topic_enable=auto_create),
            clock=self.clock,
            check_folder=self.store.check_folder,
        )
        self.groups = SubscriptionGroupTable(
            SubscriptionGroups(directory), auto_create=auto_create, clock=self.clock, max_groups=5_000
        )
        self.offsets = ConsumerOffsets(directory)
        self.offset_commits = OffsetCommits(self.offsets, self.topics, self.groups)
        self.delay_offsets = DelayOffsets(directory)
        self.producers = ProducerGroups()
        self.changes: list[tuple[str, list[Wire]]] = []
        self.consumers = ConsumerGroups(lambda group, connections: self.changes.append((group, connections)))
        self.held = HeldPulls()
        self.filters = MessageFilters(is_property_filter_enabled=property_filter)
        self.statistics = BrokerStatistics(start_ms=self.clock(), flows=MessageFlows(IDENTITY.cluster))
        self.put_times = PutTimes()
        self.half_messages = NoHalfMessages(self.store)
        self.delayed = DelayedDelivery(
            store=self.store,
            group_commit=self.commit,
            offsets=self.delay_offsets,
            queues=self.topics,
            levels_ms=config.delay_levels_ms,
            clock=self.clock,
            max_sleep_s=1.0,
        )
        self.pulls = PullProcessor(
            store=self.store,
            topic_table=self.topics,
            subscription_groups=self.groups,
            consumer_groups=self.consumers,
            offset_commits=self.offset_commits,
            held_pulls=self.held,
            message_filters=self.filters,
            statistics=self.statistics,
            max_messages=32,
            max_bytes=256 * 1024,
            short_polling_ms=None,
            broker_permission=6,
            clock=self.clock,
        )
        send = SendProcessor(
            identity=IDENTITY,
            store=self.store,
            group_commit=self.commit,
            destination=SendDestination(self.topics, self.groups, Random(1)),
            half_messages=self.half_messages,
            region_id="DefaultRegion",
            is_trace_on=True,
            statistics=self.statistics,
            delay_levels_ms=config.delay_levels_ms,
            clock=self.clock,
        )
        send_back = SendBackProcessor(
            store=self.store,
            group_commit=self.commit,
            topic_table=self.topics,
            subscription_groups=self.groups,
            statistics=self.statistics,
            consumer_groups=self.consumers,
            offsets=self.offsets,
            highest_delay_level=18,
            clock=self.clock,
            random=Random(1),
        )
        clients = ClientProcessor(
            producer_groups=self.producers,
            consumer_groups=self.consumers,
            subscription_groups=self.groups,
            topic_table=self.topics,
            message_filters=self.filters,
            clock=self.clock,
        )
        self.clients = clients
        self.dispatcher = Dispatcher(
            refusals={IllegalMessage: ResponseCode.MESSAGE_ILLEGAL, StoreUnwritable: ResponseCode.SERVICE_NOT_AVAILABLE}
        )
        for processor in (send, send_back, self.pulls, clients):
            self.dispatcher.add(processor.handlers)
        self.store.arrival_listener = self._arrived

    def _arrived(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        self.delayed.on_arrival(topic, queue_id, max_offset)
        self.pulls.on_arrival(topic, queue_id, max_offset)
        self.statistics.flows.on_arrival(topic, queue_id, max_offset, size)

    def request(
        self,
        wire: Wire,
        code: int,
        header: CommandHeader | None = None,
        body: bytes = b"",
        *,
        oneway: bool = False,
        opaque: int = 1,
        serialize_type: SerializeType = SerializeType.JSON,
    ) -> None:
        """Passes a request to the dispatcher. The response, if any, is appended to `wire.answers`."""
        frame = encode_request(code, header, body, opaque=opaque, oneway=oneway, serialize_type=serialize_type)
        self.dispatcher.on_requests(wire, FrameDecoder().feed(frame))
        self.commit.settle()

    def ask(self, code: int, header: CommandHeader | None = None, body: bytes = b"", wire: Wire | None = None) -> RemotingCommand:
        """Sends a request. Returns the response."""
        wire = wire or Wire()
        before = len(wire.answers)
        self.request(wire, code, header, body)
        (answer,) = wire.answers[before:]
        return answer

    def heartbeat(self, wire: Wire, *, consumers: list[ConsumerData] | None = None, producers: tuple[str, ...] = ()) -> None:
        """Sends a heartbeat of a client."""
        data = HeartbeatData(
            client_id=f"client@{wire.peer}",
            consumer_data_set=consumers or [],
            producer_data_set=[ProducerData(group_name=name) for name in producers],
        )
        answer = self.ask(34, None, data.encode(), wire)
        assert answer.code == ResponseCode.SUCCESS

    def messages(self, topic: str, queue_id: int = 0) -> list[Record]:
        """Returns all visible messages of a queue."""
        return decode_records(b"".join(self.store.pull(topic.encode(), queue_id, 0, 1000, 1 << 30).records))

    def step_clock(self, step_ms: int) -> None:
        """Steps the wall clock, as BrokerClock reports it."""
        self.delayed.clock_stepped(step_ms)
        self.clock.now_ms += step_ms

    def deliver_due(self, after_ms: int = 0) -> None:
        """Delivers the messages that are due after `after_ms`, as the timer does."""
        self.clock.now_ms += after_ms
        self.delayed.deliver_due()
        self.commit.settle()
        self.delayed.confirm(self.store.flushed_position)


PULL = PullMessageRequestHeader(
    consumer_group="g",
    topic="orders",
    queue_id=0,
    queue_offset=0,
    max_msg_nums=32,
    sys_flag=0,
    commit_offset=0,
    suspend_timeout_millis=0,
    sub_version=0,
)


@pytest.fixture
def make_desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    desks = []

    def make(**settings: object) -> Desk:
        desks.append(Desk(tmp_path, **settings))
        return desks[-1]

    yield make
    for desk in desks:
        desk.store.close()


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()


@pytest.fixture
def broker() -> TransactionBroker:
    return TransactionBroker()


@pytest.fixture
def producer(broker: TransactionBroker) -> Producer:
    """Creates a producer that is online and receives the broker's check-backs."""
    producer = Producer()
    broker.online(producer)
    return producer


__all__ = ["IDENTITY", "PULL", "START_MS", "Clock", "Desk", "Wire", "replace"]
