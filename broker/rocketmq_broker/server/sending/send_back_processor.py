"""Stores messages that a consumer failed to process, for a retry or as dead letters (asyncConsumerSendMsgBack)."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import permissions, topics
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.message.dead_letters import with_origin
from rocketmq_broker.message.record import Record, decode_record, moved_message
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeType
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.delay_levels import Place, waiting_place
from rocketmq_broker.server.sending.send_processor import NO_ROOM
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.names import refuse_as_consumer, refuse_message_of_the_broker
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets, MessageStore, UnreadableRecord
from rocketmq_broker.world import Chance

FIRST_RETRY_LEVEL: Final = 3
"""The delay level of the first retry, 10 s. Each further retry uses the next level."""

logger = logging.getLogger(__name__)

_INT32_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBackProcessor:
    """Stores a failed message again, in the group's retry topic after a delay or in the group's dead-letter topic."""

    store: MessageStore
    group_commit: GroupCommit
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    statistics: BrokerStatistics
    consumer_groups: ConsumerGroups
    offsets: ConsumerOffsets
    highest_delay_level: int
    clock: Callable[[], int]
    random: Chance

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handler of a consumer's request to retry a message."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    def send_back(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Stores a message that the consumer will retry later."""
        header = command.decode_header(ConsumerSendMsgBackRequestHeader)
        refuse_as_consumer(header.group)
        group = self.subscription_groups.for_consuming(header.group)
        if group.retry_queue_nums <= 0:
            return encode_response(command, ResponseCode.SUCCESS)
        record = self._find(header.offset)
        self._refuse_unless_received(header.group, record.topic)
        place = self._place(header, group, record)
        reconsume_times = min(record.reconsume_times + 1, _INT32_MAX)
        message = moved_message(record, place.topic, place.queue_id, place.properties, reconsume_times)
        appended = self.store.append(message, self.clock(), was_accepted=True)
        self.statistics.flows.sent_back(_origin_topic(record), header.group)
        self.group_commit.appended()
        if not command.is_oneway:
            self.group_commit.after_durable(appended.end_position, connection, command)
        return None

    def _find(self, commit_log_offset: int) -> Record:
        try:
            return decode_record(self.store.read_queued(commit_log_offset))
        except UnreadableRecord:
            remark = f"look message by offset failed, {commit_log_offset}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark) from None

    def _refuse_unless_received(self, group_name: str, topic: bytes) -> None:
        """Raises RequestRefused if the group cannot have received a message of the topic."""
        refuse_message_of_the_broker(topic)
        name = topic.decode(errors="replace")
        if name in (topics.retry_topic(group_name), topics.dead_letter_topic(group_name)):
            return
        group = self.consumer_groups.find(group_name)
        if group is not None and (name in group.subscriptions or group.consume_type is ConsumeType.CONSUME_ACTIVELY):
            return  # a pull consumer need not subscribe to its topics
        if not self.offsets.of_topic(group_name, name):
            remark = (
                f"group[{group_name}] cannot have received the message: no subscription to topic[{name}], and no offsets in it"
            )
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)

    def _place(self, header: ConsumerSendMsgBackRequestHeader, group: SubscriptionGroupConfig, record: Record) -> Place:
        max_times = header.max_reconsume_times if header.max_reconsume_times is not None else group.retry_max_times
        encoded = props.put_if_it_fits(with_origin(record), props.WAIT_STORE_MSG_OK, "false")
        if record.reconsume_times >= max_times or header.delay_level < 0:
            return self._dead_letter(header.group, encoded)
        config = self.topic_table.retry_topic(header.group, group.retry_queue_nums, unit_mode=header.unit_mode)
        if not permissions.is_writeable(config.perm):
            remark = f"the topic[{config.topic_name}] sending message is forbidden"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        queue_id = self.random.randrange(group.retry_queue_nums)
        level = header.delay_level or FIRST_RETRY_LEVEL + record.reconsume_times
        place = waiting_place(Place(config.topic_name.encode(), queue_id, encoded), level, self.highest_delay_level)
        if len(place.properties) > props.MAX_PROPERTIES_LENGTH or props.find(encoded, props.RETRY_TOPIC) is None:
            logger.warning(NO_ROOM, f"a message of {record.topic.decode()}", header.group, len(record.properties))
            return self._dead_letter(header.group, encoded)
        return place

    def _dead_letter(self, group: str, encoded: bytes) -> Place:
        topic = self.topic_table.dead_letter_topic(group).topic_name
        return Place(topic.encode(), 0, props.put_if_it_fits(encoded, props.DELAY_TIME_LEVEL, "0"))


def _origin_topic(record: Record) -> bytes:
    """Returns the topic of the first delivery attempt."""
    origin = props.find(record.properties, props.RETRY_TOPIC)
    return origin.encode() if origin is not None else record.topic
