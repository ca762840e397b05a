"""Stores messages of producers: single, batched and one-way (RocketMQ's SendMessageProcessor)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Final, Protocol

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.send import (
    SendHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Answer, Handler, RequestRefused, Steps
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.delay_levels import TIMER, Place, delay_level, timed_level, waiting_place
from rocketmq_broker.server.sending.batch_body import split_batch
from rocketmq_broker.server.sending.sent_properties import (
    BatchSize,
    StoredProperties,
    begins_transaction,
    refuse_in_batch,
    refuse_too_much,
    stored_sys_flag,
)
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import Appended, MessageStore
from rocketmq_broker.world import Chance

logger = logging.getLogger(__name__)

NO_ROOM: Final = (
    "%s is stored as a dead letter of group %s instead of being retried: its %d bytes of properties leave no room for "
    "the properties of a retry"
)
"""The log line for a message that is not retried, because its properties leave no room for the properties of a retry.

Only messages that another broker stored can have so many properties. If they were refused, consumers would send them back
forever.
"""

_MULTIPLE_TAGS: Final = "MULTI_TAG"
"""The value of RocketMQ's TopicFilterType for topics whose messages may have several tags."""


class SendDestination:
    """Determines the destination of each message. A retried message goes to the dead-letter topic after its last attempt."""

    def __init__(self, topic_table: TopicTable, subscription_groups: SubscriptionGroupTable, random: Chance) -> None:
        self._topics = topic_table
        self._groups = subscription_groups
        self._random = random

    def of(self, header: SendHeader) -> tuple[bytes, int, int]:
        """Returns the message's topic, its queue, and the bits that the topic adds to its sysFlag. Raises RequestRefused.

        The bits are set if messages of the topic may have several tags.
        """
        topic, queue_id = header.topic, header.queue_id
        config = self._topics.for_sending(topic, header.default_topic, header.default_topic_queue_nums, header.unit_mode)
        if queue_id >= config.read_queue_nums and queue_id >= config.write_queue_nums:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"request queueId[{queue_id}] is illegal, {config}")
        if topic.startswith(topics.RETRY_PREFIX) and self._is_given_up(header):
            dead_letters = self._topics.dead_letter_topic(topic.removeprefix(topics.RETRY_PREFIX))
            return dead_letters.topic_name.encode(), 0, 0
        if queue_id < 0:
            if config.write_queue_nums <= 0:
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"topic {topic} has no queue to write to: set writeQueueNums")
            queue_id = self._random.randrange(config.write_queue_nums)
        topic_bits = sysflag.MULTI_TAGS if config.topic_filter_type == _MULTIPLE_TAGS else 0
        return topic.encode(), queue_id, topic_bits

    def without_room(self, retry_topic: bytes, encoded: bytes) -> Place:
        """Returns the dead-letter topic as the place of a retried message whose properties leave no room for a delay level."""
        group = retry_topic.decode().removeprefix(topics.RETRY_PREFIX)
        logger.warning(NO_ROOM, "a retried message", group, len(encoded))
        return Place(self._topics.dead_letter_topic(group).topic_name.encode(), 0, encoded)

    def _is_given_up(self, header: SendHeader) -> bool:
        """Returns True if a retried message has reached the maximum number of retries."""
        group = self._groups.for_consuming(header.topic.removeprefix(topics.RETRY_PREFIX))
        max_times = header.max_reconsume_times if header.max_reconsume_times is not None else group.retry_max_times
        return header.reconsume_times >= max_times


BATCH_AT_ONCE_BYTES: Final = 2048
"""The maximum size, in bytes, of a batch that is stored in one turn of the event loop. It has at most about 100 messages."""
BATCHED_AT_ONCE: Final = 32
"""The number of messages of a longer batch that one step stores. A step takes about a millisecond."""
MAX_BATCHED: Final = 65_536
"""The maximum number of messages in a batch.

The response contains the id of each message; encoding 190,000 ids took 40 to 70 ms.
"""
_DEAD_LETTERS: Final = topics.DEAD_LETTER_PREFIX.encode()


class HalfMessageStore(Protocol):
    """Stores messages that begin a transaction."""

    def prepare(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        """Stores the message as a half message.

        Raises RequestRefused or IllegalMessage, and stores nothing in that case.
        """


class SendProcessor:
    """Checks and appends messages. Responds once a message is as durable as flushDiskType requires."""

    def __init__(
        self,
        *,
        identity: BrokerIdentity,
        store: MessageStore,
        group_commit: GroupCommit,
        destination: SendDestination,
        half_messages: HalfMessageStore,
        region_id: str,
        is_trace_on: bool,
        statistics: BrokerStatistics,
        delay_levels_ms: Sequence[int],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._group_commit = group_commit
        self._destination = destination
        self._half_messages = half_messages
        self._region_id = region_id
        self._is_trace_on = is_trace_on
        self._statistics = statistics
        self._delay_levels_ms = delay_levels_ms
        self._clock = clock
        self._store_host = identity.store_host
        self._properties = StoredProperties(identity.cluster)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of single messages, with full or short header names, and of batches."""
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.send_batch,
        }

    def send_v2(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Handles a message with short names of the header fields."""
        header = command.decode_header(SendMessageRequestHeaderV2)
        return (self._send_batch if header.batch else self._send)(connection, command, header)

    def send(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Handles a message with full names of the header fields."""
        header = command.decode_header(SendMessageRequestHeader)
        return (self._send_batch if header.batch else self._send)(connection, command, header)

    def send_batch(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Handles several messages in one body."""
        return self._send_batch(connection, command, command.decode_header(SendMessageRequestHeaderV2))

    def _send(self, connection: Connection, command: RemotingCommand, header: SendHeader) -> bytes | None:
        topic, queue_id, topic_bits = self._destination.of(header)
        encoded = header.properties.encode()
        refuse_too_much(header.topic, encoded)
        now_ms = self._clock()
        level = delay_level(encoded)
        if level <= 0 and encoded.find(TIMER) >= 0:
            level = timed_level(encoded, now_ms, self._delay_levels_ms)
            encoded = props.put(encoded, props.DELAY_TIME_LEVEL, str(level)) if level > 0 else encoded
        traffic = self._statistics.traffic
        is_transactional = begins_transaction(encoded)
        sys_flag = stored_sys_flag(header.sys_flag, is_transactional=is_transactional) | topic_bits
        # Old clients send a consumer's failed message back as a new message, with TRAN_MSG still set.
        if is_transactional and not (header.reconsume_times > 0 and level > 0):
            place = Place(topic, queue_id, self._properties.of_waiting(encoded))
            message = sent_message(connection, header, place, command.body, header.flag, sys_flag)
            appended = self._half_messages.prepare(message, header.producer_group, now_ms)
            counts = traffic.transactional
        else:
            place = self._place(topic, queue_id, encoded, level)
            message = sent_message(connection, header, place, command.body, header.flag, sys_flag)
            appended = self._store.append(message, now_ms)
            counts = traffic.delayed if level > 0 else traffic.normal
        count(counts, topic, 1, appended.end_position - appended.commit_log_offset)
        self._statistics.messages_put += 1
        self._group_commit.appended()
        if not command.is_oneway:
            stored = self._stored(self._message_id(appended), queue_id, appended.queue_offset)
            self._group_commit.after_durable(appended.end_position, connection, command, stored)
        return None

    def _send_batch(self, connection: Connection, command: RemotingCommand, header: SendHeader) -> Answer | Steps:
        topic, queue_id, topic_bits = self._destination.of(header)
        sys_flag = stored_sys_flag(header.sys_flag, is_transactional=False) | topic_bits
        if len(command.body) > self._store.config.max_message_size:
            size, limit = len(command.body), self._store.config.max_message_size
            raise IllegalMessage(f"batch too long: {size} bytes, limit {limit}")
        steps = self._store_batch(connection, command, header, Place(topic, queue_id, b""), sys_flag)
        return finish(steps) if len(command.body) <= BATCH_AT_ONCE_BYTES else steps

    def _store_batch(
        self, connection: Connection, command: RemotingCommand, header: SendHeader, place: Place, sys_flag: int
    ) -> Steps:
        """Stores the whole batch, or nothing if a message is illegal.

        Other messages may be stored between the messages of a long batch.
        """
        of_batch = self._properties.of_batch(header.properties.encode())
        batch_size = BatchSize(self._store.config.max_message_size)
        for number, message in enumerate(split_batch(command.body)):
            if number >= MAX_BATCHED:
                raise IllegalMessage(f"too many messages in the batch: limit {MAX_BATCHED}; send several batches")
            encoded = of_batch.of(message.properties)
            refuse_in_batch(place.topic, encoded)
            batch_size.add(encoded, message.properties)
            if number % BATCHED_AT_ONCE == BATCHED_AT_ONCE - 1:
                yield
        now_ms, first_offset, size, message_ids = self._clock(), -1, 0, StringIO()
        # Split the body again: a list of hundreds of thousands of objects would burden the garbage collector.
        for number, (flag, body, own) in enumerate(split_batch(command.body)):
            if number and number % BATCHED_AT_ONCE == 0:
                # Do not pause after the last message: the positions passed to `after_durable` must ascend.
                self._group_commit.appended(BATCHED_AT_ONCE)
                yield
            where = Place(place.topic, place.queue_id, of_batch.of(own))
            appended = self._store.append(sent_message(connection, header, where, body, flag, sys_flag), now_ms)
            first_offset = appended.queue_offset if first_offset < 0 else first_offset
            size += appended.end_position - appended.commit_log_offset
            message_ids.write(f",{self._message_id(appended)}" if number else self._message_id(appended))
        count(self._statistics.traffic.normal, place.topic, number + 1, size)
        self._statistics.messages_put += number + 1
        self._group_commit.appended()
        if not command.is_oneway:
            stored = self._stored(message_ids.getvalue(), place.queue_id, first_offset)
            self._group_commit.after_durable(appended.end_position, connection, command, stored)
        return None

    def _place(self, topic: bytes, queue_id: int, encoded: bytes, level: int) -> Place:
        if level > 0 and not topic.startswith(_DEAD_LETTERS):
            encoded = self._properties.of_waiting(encoded)
            place = waiting_place(Place(topic, queue_id, encoded), level, len(self._delay_levels_ms))
            is_without_room = len(encoded) <= props.MAX_PROPERTIES_LENGTH < len(place.properties)
            return self._destination.without_room(topic, encoded) if is_without_room else place
        return Place(topic, queue_id, self._properties.of(encoded))

    def _message_id(self, appended: Appended) -> str:
        return offset_message_id(self._store_host, appended.commit_log_offset)

    def _stored(self, msg_id: str, queue_id: int, queue_offset: int) -> SendMessageResponseHeader:
        return SendMessageResponseHeader(
            msg_id=msg_id,
            queue_id=queue_id,
            queue_offset=queue_offset,
            region_id=self._region_id,
            is_trace_on=self._is_trace_on,
        )


def sent_message(connection: Connection, header: SendHeader, place: Place, body: bytes, flag: int, sys_flag: int) -> InnerMessage:
    """Returns the message to store at `place`, with the other values of the request."""
    return InnerMessage(
        place.topic, place.queue_id, body, place.properties, flag, sys_flag, header.born_timestamp, connection.born_host,
        header.reconsume_times,
    )  # fmt: skip
