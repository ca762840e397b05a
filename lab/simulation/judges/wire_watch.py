"""Checks invariants on the frames that clients and brokers exchange."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from lab.simulation.judges.violation import Promise, Violation
from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_broker.message.errors import MessageError
from rocketmq_broker.message.record import Record, decode_records
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RESPONSE_FLAG, RemotingCommand
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pull import (
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    SendHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.server.sending.batch_body import split_batch
from rocketmq_broker.testing.exploring.frame_watch import FrameJournal
from rocketmq_commitlog.commit_log import Damage, LogRecord

_DECISIONS: Final = {sysflag.TRANSACTION_COMMIT_TYPE: "COMMIT", sysflag.TRANSACTION_ROLLBACK_TYPE: "ROLLBACK"}
_HEADER_BEGINS: Final = 8
"""The offset of the header in a frame, in bytes."""
_JSON_HEADER: Final = re.compile(rb'\{"code":(\d+),.*?"flag":(\d+),"language":"[A-Z]+","opaque":(\d+),', re.DOTALL)
"""Matches a header as our commands encode it, with the groups request code, flag and opaque."""
_PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
_SAYING: Final = (
    SEND_REQUESTS
    | _PULLS
    | {
        RequestCode.END_TRANSACTION,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.CHECK_TRANSACTION_STATE,
    }
)
"""The requests that concern messages."""
_INTERNAL: Final = frozenset(
    {topics.HALF_TOPIC, topics.OP_HALF_TOPIC, topics.CHECK_MAX_TIME_TOPIC, topics.SCHEDULE_TOPIC, topics.TRACE_TOPIC}
)
"""The reserved topics of the broker. Their readers are not consumers."""

IsHandled = Callable[[str, str, str], bool]
"""A function that takes a consumer group, a topic and an order id.

It returns True if the group has handled the order's message in this topic.
"""


@dataclass(frozen=True, slots=True)
class SentNames:
    """The messages in a request. `keys` maps the unique key of each message to all its keys."""

    keys: Mapping[str, tuple[str, ...]]
    given_back_by: str | None = None
    """The consumer group, if it sends messages to its retry topic after the broker refused to take them back. Otherwise None."""


@dataclass(frozen=True, slots=True)
class PulledQueue:
    """A queue of a broker from which a consumer group pulls."""

    broker: str
    group: str
    topic: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A message that a consumer group sends back for redelivery."""

    group: str
    unique_key: str


@dataclass(slots=True)
class WatchedOffsets:
    """The messages that a group pulled from a queue, and the offset before which all messages were checked."""

    pulled: dict[int, Record] = field(default_factory=dict)
    known_end: int = 0
    """The greatest next offset that the broker or the group has sent."""
    checked: int = 0


class WireWatch:
    """Checks each frame once, when it is sent. Frames that are dropped later are checked too."""

    def __init__(
        self,
        is_handled: IsHandled,
        local_state: Callable[[str], str | None],
        journal: FrameJournal | None = None,
    ) -> None:
        """Creates a watch. `is_handled` reads the consumers' databases.

        `local_state` returns the state of a transaction in the order database. `journal` records the messages in the frames.
        """
        self._journal = journal
        self._is_handled = is_handled
        self._local_state = local_state
        self._asked: dict[tuple[str, str, int], SentNames | PulledQueue | GivenBack] = {}
        self._halves: set[str] = set()
        self._decisions: dict[str, str] = {}
        self._acknowledged: dict[str, dict[str, tuple[str, ...]]] = {}
        self._given_back: set[GivenBack] = set()
        self._progress: dict[PulledQueue, WatchedOffsets] = {}
        self._seen_early: set[str] = set()

    def observe(self, sender: str, receiver: str, frame: bytes) -> list[Violation]:
        """Checks one complete frame, including its length. Ignores damaged frames, and frames that concern no messages.

        `sender` and `receiver` are addresses with ports. Each connection of a client must use a separate client port, because the
        numbers of requests are unique only within a connection. A broker's port is always the port on which it listens.
        """
        if self._says_nothing(sender, receiver, frame):
            return []
        try:
            commands = FrameDecoder(len(frame)).feed(frame)
            return [violation for command in commands for violation in self._look(sender, receiver, command)]
        except (ProtocolError, MessageError):
            return []

    def after_recovery(self, broker: str, records: Iterable[LogRecord | Damage]) -> list[Violation]:
        """Checks the commit log of a broker that restarted after a crash.

        Call this method only for brokers that flush messages before they respond.
        """
        kept = {properties.find(record.properties, properties.UNIQUE_KEY) for record in records if isinstance(record, LogRecord)}
        for queue, progress in self._progress.items():
            if queue.broker == broker:
                progress.checked = 0
                progress.pulled.clear()
        acknowledged = self._acknowledged.get(broker, {})
        lost = [unique_key for unique_key in acknowledged if unique_key not in kept]
        text = "the broker acknowledged the message, and its commit log does not have it after a crash"
        return [Violation(Promise.ACKNOWLEDGED_IS_KEPT, text, acknowledged.pop(unique_key)) for unique_key in lost]

    def _says_nothing(self, sender: str, receiver: str, frame: bytes) -> bool:
        """Returns True if the frame concerns no messages, such as a heartbeat. Does not decode the whole frame."""
        header = _JSON_HEADER.match(frame, _HEADER_BEGINS)
        if header is None:
            return False
        if int(header[2]) & RESPONSE_FLAG:
            return (receiver, sender, int(header[3])) not in self._asked
        return int(header[1]) not in _SAYING

    def _look(self, sender: str, receiver: str, command: RemotingCommand) -> Iterator[Violation]:
        if command.is_response:
            asked = self._asked.pop((receiver, sender, command.opaque), None)
            if isinstance(asked, PulledQueue):
                self._record(sender, receiver, command)
            yield from self._look_at_answer(sender, asked, command)
        elif command.code in SEND_REQUESTS:
            self._record(sender, receiver, command)
            self._asked[sender, receiver, command.opaque] = self._sent(command)
        elif command.code == RequestCode.END_TRANSACTION:
            self._record(sender, receiver, command)
            yield from self._look_at_decision(command.decode_header(EndTransactionRequestHeader))
        elif command.code in _PULLS:
            yield from self._look_at_pull(sender, receiver, command)
        elif command.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            told = command.decode_header(UpdateConsumerOffsetRequestHeader)
            queue = PulledQueue(receiver, told.consumer_group, told.topic, told.queue_id)
            yield from self._look_at_offset(queue, told.commit_offset)
        elif command.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            back = command.decode_header(ConsumerSendMsgBackRequestHeader)
            self._asked[sender, receiver, command.opaque] = GivenBack(back.group, back.origin_msg_id or "")
        else:
            self._record(sender, receiver, command)

    def _record(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        if self._journal is not None:
            self._journal.record(sender, receiver, command)

    def _look_at_answer(
        self, broker: str, asked: SentNames | PulledQueue | GivenBack | None, command: RemotingCommand
    ) -> Iterator[Violation]:
        if isinstance(asked, PulledQueue):
            yield from self._look_at_pulled(asked, command)
        elif command.code != ResponseCode.SUCCESS:
            return
        elif isinstance(asked, GivenBack):
            self._given_back.add(asked)
        elif isinstance(asked, SentNames):
            self._acknowledged.setdefault(broker, {}).update(asked.keys)
            if asked.given_back_by is not None:
                self._given_back.update(GivenBack(asked.given_back_by, unique_key) for unique_key in asked.keys)

    def _sent(self, command: RemotingCommand) -> SentNames:
        header: SendHeader
        if command.code == RequestCode.SEND_MESSAGE:
            header = command.decode_header(SendMessageRequestHeader)
        else:
            header = command.decode_header(SendMessageRequestHeaderV2)
        is_batch = command.code == RequestCode.SEND_BATCH_MESSAGE or header.batch
        encoded = [one.properties for one in split_batch(command.body)] if is_batch else [header.properties.encode()]
        named = {names[0]: names for of_message in encoded if (names := _names(of_message))}
        if not is_batch and properties.find(encoded[0], properties.TRANSACTION_PREPARED) == "true":
            self._halves.update(named)
        is_retry = header.topic.startswith(topics.RETRY_PREFIX)
        return SentNames(named, header.topic.removeprefix(topics.RETRY_PREFIX) if is_retry else None)

    def _look_at_decision(self, header: EndTransactionRequestHeader) -> Iterator[Violation]:
        transaction_id, decision = header.transaction_id or header.msg_id, _DECISIONS.get(header.commit_or_rollback)
        if decision is None:
            return
        before = self._decisions.setdefault(transaction_id, decision)
        if before != decision:
            text = f"{header.producer_group} told the broker {decision}, after {before}"
            yield Violation(Promise.ONE_OUTCOME, text, (transaction_id,))
        local = self._local_state(transaction_id)
        wanted = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}[decision]
        if local != wanted and (decision == "COMMIT" or local is not None):
            text = f"{header.producer_group} told the broker {decision}, and the order database says {local or 'nothing'}"
            yield Violation(Promise.ONE_OUTCOME, text, (transaction_id,))

    def _look_at_pull(self, sender: str, receiver: str, command: RemotingCommand) -> Iterator[Violation]:
        header = command.decode_header(PullMessageRequestHeader)
        if header.topic in _INTERNAL:
            return
        queue = PulledQueue(receiver, header.consumer_group, header.topic, header.queue_id)
        self._asked[sender, receiver, command.opaque] = queue
        if header.sys_flag & pull_sysflag.COMMIT_OFFSET and header.commit_offset > 0:
            yield from self._look_at_offset(queue, header.commit_offset)

    def _look_at_pulled(self, queue: PulledQueue, command: RemotingCommand) -> Iterator[Violation]:
        progress = self._progress.setdefault(queue, WatchedOffsets())
        with suppress(ProtocolError):
            progress.known_end = max(progress.known_end, command.decode_header(PullMessageResponseHeader).next_begin_offset)
        if command.code != ResponseCode.SUCCESS:
            return
        for record in decode_records(command.body):
            progress.pulled[record.queue_offset] = record
            names = _names(record.properties)
            is_early = names and names[0] in self._halves and self._decisions.get(names[0]) != "COMMIT"
            if is_early and names[0] not in self._seen_early:
                self._seen_early.add(names[0])
                text = f"{queue.group} gets the message from {queue.topic}, and nobody told the broker COMMIT"
                yield Violation(Promise.VISIBLE_AFTER_COMMIT, text, names)

    def _look_at_offset(self, queue: PulledQueue, offset: int) -> Iterator[Violation]:
        progress = self._progress.setdefault(queue, WatchedOffsets())
        if offset > progress.known_end:
            text = f"{queue.group} says that it handled {queue.topic}, queue {queue.queue_id}, up to {offset}"
            yield Violation(Promise.OFFSET_BEHIND_WORK, f"{text}, and it got messages up to {progress.known_end} only", ())
            progress.known_end = offset
        for queue_offset in range(progress.checked, offset):
            record = progress.pulled.pop(queue_offset, None)
            if record is not None and not self._is_done(queue, record):
                text = f"{queue.group} says that it handled {queue.topic}, queue {queue.queue_id}, up to {offset}"
                names = _names(record.properties)
                yield Violation(Promise.OFFSET_BEHIND_WORK, f"{text}, and it has not handled message {queue_offset}", names)
        progress.checked = max(progress.checked, offset)

    def _is_done(self, queue: PulledQueue, record: Record) -> bool:
        names = _names(record.properties)
        if not names or GivenBack(queue.group, names[0]) in self._given_back:
            return True
        topic = record.get_property(properties.RETRY_TOPIC) or queue.topic
        return all(self._is_handled(queue.group, topic, key) for key in names[1:])


def _names(encoded: bytes) -> tuple[str, ...]:
    """Returns the unique key and the other keys of a message. Returns an empty tuple if there is no unique key."""
    unique_key = properties.find(encoded, properties.UNIQUE_KEY)
    return () if unique_key is None else (unique_key, *(properties.find(encoded, properties.KEYS) or "").split())
