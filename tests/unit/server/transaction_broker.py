"""The transactional part of a broker without an event loop: a real store and real processors.

Producers are objects that record the check-backs and responses that they receive.
"""

import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import decode_record, host_bytes
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import Answerable, RemotingCommand, decode_command, encode_request, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.transaction import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher, Handler
from rocketmq_broker.remoting.errors import ConnectionClosed
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.arrivals import Arrivals
from rocketmq_broker.server.durability.completion import CommitListener
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.parked import ParkedMessages
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.schedule.expiry_clock import ExpiryClock
from rocketmq_broker.server.topics.topic_table import TopicRules, TopicTable
from rocketmq_broker.server.transactions import NoTransactions, build_transactions
from rocketmq_broker.store import Appended, ConsumerOffsets, MessageStore, StoreConfig, StoreUnwritable, TopicConfigs
from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.disk import Disk
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight

ROOT = Path("/store")
GROUP = "order_service"
STORE_HOST = host_bytes("127.0.0.1", 10911)
POLICY = CheckPolicy(
    transaction_timeout_ms=1000, check_interval_ms=2000, check_max=3, file_reserved_ms=3_600_000, hold_back_max=8
)
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"


@dataclass(frozen=True, slots=True)
class Check:
    """A check-back as a producer receives it."""

    commit_log_offset: int
    queue_offset: int
    transaction_id: str
    times: int
    topic: str
    body: bytes


@dataclass(slots=True, eq=False)
class Producer:
    """A producer's connection, which records the check-backs and responses that the broker sends."""

    peer: str = "127.0.0.1:5555"
    is_writable: bool = True
    checks: list[Check] = field(default_factory=list)
    answers: list[RemotingCommand] = field(default_factory=list)

    @property
    def born_host(self) -> bytes:
        host, port = self.peer.split(":")
        return host_bytes(host, int(port))

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)

    def send(self, frame: bytes) -> None:
        self.answers.append(_decode(frame))

    def invoke_oneway(self, code: int, header: CheckTransactionStateRequestHeader, body: bytes) -> None:
        if not self.is_writable:
            raise ConnectionClosed(f"the connection to {self.peer} is closed")
        assert code == RequestCode.CHECK_TRANSACTION_STATE
        record = decode_record(body)
        assert (record.commit_log_offset, record.queue_offset) == (header.commit_log_offset, header.tran_state_table_offset)
        assert record.get_property(props.UNIQUE_KEY) == header.msg_id == header.transaction_id
        times = int(record.get_property(props.TRANSACTION_CHECK_TIMES) or 0)
        check = Check(
            record.commit_log_offset, record.queue_offset, str(header.msg_id), times, record.topic.decode(), record.body
        )
        self.checks.append(check)


@dataclass(slots=True)
class CountsFile:
    """The file of check counts, in memory."""

    content: dict[str, Any] = field(default_factory=dict)

    def read(self, parse: Callable[[Any], dict[int, int]]) -> dict[int, int]:
        return parse(self.content)

    def write(self, value: dict[str, Any]) -> None:
        self.content = value


class AtOnce:
    """A replacement for the tasks of the event loop. `start` returns when the work is done."""

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(StopIteration):
            while True:
                work.send(None)


class Handlers:
    """A replacement for a Dispatcher that exposes its handlers, so that a test sees their errors."""

    def __init__(self) -> None:
        self.handlers: dict[int, Handler] = {}
        self._dispatcher = Dispatcher()
        self.add_disconnect_listener = self._dispatcher.add_disconnect_listener
        self.on_disconnected = self._dispatcher.on_disconnected

    def add(self, handlers: Mapping[int, Handler]) -> None:
        self.handlers.update(handlers)


class TransactionBroker:
    """One run of a broker. `restarted` returns the next run."""

    def __init__(
        self,
        *,
        files: MemoryFiles | None = None,
        offsets: dict[str, int] | None = None,
        counts_file: CountsFile | None = None,
        policy: CheckPolicy = POLICY,
        now_ms: int = 1_000_000,
        in_flight_limit: int = 256,
        answer_timeout_ms: int = 1500,
        is_index_enabled: bool = True,
        reject_transaction_message: bool = False,
        queue_nums: int = 8,
        max_sleep_s: float = 1.0,
    ) -> None:
        self.now_ms = now_ms
        self._stepped_ms = 0
        self.files = files or MemoryFiles()
        self.disk = Disk(self.files)
        self.policy = policy
        self.answer_timeout_ms = answer_timeout_ms
        self.is_index_enabled = is_index_enabled
        config = StoreConfig(
            root=ROOT,
            store_host=STORE_HOST,
            commit_log_segment_size=1 << 16,
            consume_queue_units_per_file=1000,
            index_slots=100,
            index_entries=1000,
            is_index_enabled=is_index_enabled,
        )
        self.store = MessageStore.open(config, self.disk)
        self.store.publish(self.store.written_position)
        self.consumer_offsets = ConsumerOffsets(ROOT / "config", self.disk)
        for topic, offset in (offsets or {}).items():
            self.consumer_offsets.commit(TRANSACTION_GROUP, topic, 0, offset)
        self.counts_file = counts_file or CountsFile()
        self.clock = BrokerClock(lambda: self.now_ms * 1_000_000, lambda: (self.now_ms - self._stepped_ms) * 1_000_000)
        self.topics = self._topic_table(queue_nums)
        self.parked = ParkedMessages(self.store, self.topics)
        self.parked.load()
        self.store.arrival_listener = Arrivals(self.parked.on_arrival, counter=lambda *arrival: None)
        self.producers: dict[str, list[Producer]] = {}
        self.listeners: list[CommitListener] = []
        self.dispatcher = Handlers()
        self.tasks = AtOnce()
        self._waiting: list[tuple[int, Producer, bytes]] = []
        self._has_appended = False
        self.transactions = build_transactions(
            store=self.store,
            consumer_offsets=self.consumer_offsets,
            counts_file=self.counts_file,
            topic_table=self.topics,
            producers=self,
            parked=self.parked,
            group_commit=cast(GroupCommit, self),
            dispatcher=cast(Dispatcher, self.dispatcher),
            tasks=cast(Tasks, self.tasks),
            policy=policy,
            clock=self.clock,
            expiry_clock=ExpiryClock(self.clock, self.clock.steady_ms, self.store.recovery.last_store_timestamp or None),
            max_sleep_s=max_sleep_s,
            idle_notes_s=2.0,
            checks_in_flight=ChecksInFlight(limit=in_flight_limit, answer_timeout_ms=answer_timeout_ms),
        )
        self.messages = self.transactions.messages
        self.check_service = self.transactions.check_service
        self.notes = self.transactions.notes
        self.in_flight = self.transactions.checks_in_flight
        self.half_messages = NoTransactions("127.0.0.1") if reject_transaction_message else self.messages
        self.completed = self.store.unpublished
        """Op messages that recovery appended."""
        self.flush()

    def _topic_table(self, queue_nums: int) -> TopicTable:
        configs = TopicConfigs(ROOT / "config", self.disk)
        configs.load()
        rules = TopicRules(cluster="DefaultCluster", broker_name="broker-a")
        topics = TopicTable(configs, rules, clock=lambda: self.now_ms, check_folder=self.store.check_folder)
        topics.update(TopicConfig("orders", queue_nums, queue_nums))
        return topics

    # What a broker around it does.

    def connections(self, group: str) -> list[Connection]:
        return [producer.connection for producer in self.producers.get(group, [])]

    def appended(self, messages: int = 1) -> None:
        self._has_appended = True

    def after_durable(
        self, position: int, connection: Any, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        self._waiting.append((position, connection, encode_response(request, ResponseCode.SUCCESS, header, body)))

    def flush(self) -> None:
        """Performs one group commit under SYNC_FLUSH."""
        try:
            self.store.flush()
        except StoreUnwritable:
            self.store.abandon_unflushed()
            for listener in (*self.listeners, self.parked):
                listener.take_back(self.store.flushed_position)
            self._waiting.clear()
            return
        self.store.publish(self.store.flushed_position)
        for listener in self.listeners:
            listener.confirm(self.store.flushed_position)
        self.parked.read_arrived()
        for position, connection, frame in self._waiting:
            assert position <= self.store.flushed_position
            connection.send(frame)
        self._waiting.clear()

    def restarted(
        self, files: MemoryFiles | None = None, *, now_ms: int | None = None, queue_nums: int = 8
    ) -> "TransactionBroker":
        """Restarts the broker, by default after a kill. Returns the new run."""
        return TransactionBroker(
            files=files if files is not None else self.files.killed(),
            offsets={
                topic: offset
                for topic in (HALF_TOPIC, OP_TOPIC)
                if (offset := self.consumer_offsets.get(TRANSACTION_GROUP, topic, 0)) is not None
            },
            counts_file=self.counts_file,
            policy=self.policy,
            answer_timeout_ms=self.answer_timeout_ms,
            now_ms=self.now_ms if now_ms is None else now_ms,
            is_index_enabled=self.is_index_enabled,
            queue_nums=queue_nums,
        )

    # What tests do with it.

    def online(self, *producers: Producer, group: str = GROUP) -> None:
        self.producers[group] = list(producers)

    def leave(self, producer: Producer, group: str = GROUP) -> None:
        """Ends the producer's connection."""
        self.producers[group].remove(producer)
        self.dispatcher.on_disconnected(producer.connection)

    def send(
        self,
        producer: Producer,
        transaction_id: str,
        body: bytes = b"order",
        *,
        flush: bool = True,
        queue_id: int = 2,
        topic: bytes = b"orders",
        **more: str,
    ) -> Appended:
        encoded = props.encode({"UNIQ_KEY": transaction_id, "TRAN_MSG": "true", "PGROUP": GROUP, "TAGS": "created", **more})
        message = InnerMessage(topic, queue_id, body, encoded, 0, 4, self.now_ms, producer.connection.born_host)
        appended = self.half_messages.prepare(message, GROUP, self.now_ms)
        if flush:
            self.flush()
        return appended

    def end(
        self,
        producer: Producer,
        half: Appended | Check,
        answer: int,
        *,
        flush: bool = True,
        is_oneway: bool = False,
        group: str = GROUP,
        from_check: bool = False,
    ) -> bytes | None:
        header = EndTransactionRequestHeader(
            producer_group=group,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.commit_log_offset,
            commit_or_rollback=answer,
            from_transaction_check=from_check,
            msg_id="x",
        )
        frame = self._ask(producer, RequestCode.END_TRANSACTION, header, is_oneway=is_oneway)
        if flush:
            self.flush()
        return frame

    def resume(self, producer: Producer, message_id: str, *, flush: bool = True) -> None:
        header = ResumeCheckHalfMessageRequestHeader(msg_id=message_id)
        self._ask(producer, RequestCode.RESUME_CHECK_HALF_MESSAGE, header)
        if flush:
            self.flush()

    def _ask(self, producer: Producer, code: int, header: Any, *, is_oneway: bool = False) -> bytes | None:
        """Calls the handler of a request. Raises the handler's error."""
        answer = self.dispatcher.handlers[code](producer.connection, _request(code, header, is_oneway))
        assert answer is None or isinstance(answer, bytes)
        return answer

    def tick(self, elapsed_ms: int = 0) -> None:
        self.now_ms += elapsed_ms
        self.check_service.handle_due(self.now_ms)
        self.flush()

    def step_clock(self, step_ms: int) -> None:
        """Steps the wall clock by more than a second."""
        self.now_ms += step_ms
        self._stepped_ms += step_ms
        self.clock.follow()

    def records(self, topic: str, queue_id: int = 0) -> list[Any]:
        found: list[Any] = []
        offset = self.store.min_offset(topic.encode(), queue_id)
        while offset < self.store.max_offset(topic.encode(), queue_id):
            pulled = self.store.pull(topic.encode(), queue_id, offset, 1000, 1 << 24)
            found += [decode_record(data) for data in pulled.records]
            offset = max(offset + 1, pulled.next_begin_offset)
        return found

    def delivered(self, queue_id: int = 2) -> list[str]:
        return [record.get_property(props.UNIQUE_KEY) for record in self.records("orders", queue_id)]

    def discarded(self) -> list[str]:
        return [record.get_property(props.UNIQUE_KEY) for record in self.records(DISCARD_TOPIC)]


def _request(code: int, header: Any, is_oneway: bool) -> RemotingCommand:
    return _decode(encode_request(code, header, opaque=1, oneway=is_oneway))


def _decode(frame: bytes) -> RemotingCommand:
    header_length = int.from_bytes(frame[5:8], "big")
    return decode_command(frame[4], frame, 8, 8 + header_length, len(frame))
