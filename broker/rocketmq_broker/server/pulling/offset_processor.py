"""Handles requests about consumer offsets and queue offsets (RocketMQ's ConsumerManageProcessor, AdminBrokerProcessor)."""

from collections.abc import Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.pull import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler
from rocketmq_broker.server.pulling.young_queues import YoungQueues
from rocketmq_broker.server.topics.names import refuse_illegal_consumer_group
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.store import ConsumerOffsets, MessageStore


class OffsetProcessor:
    """Handles offset requests. Keeps consumer offsets in memory, and saves them every few seconds as RocketMQ does."""

    def __init__(
        self, *, store: MessageStore, offsets: ConsumerOffsets, offset_commits: OffsetCommits, young_queue_bytes: int
    ) -> None:
        """Creates the processor. A queue is young while at most `young_queue_bytes` were stored after its first message."""
        self._store = store
        self._offsets = offsets
        self._commits = offset_commits
        self._young = YoungQueues(store, young_queue_bytes)

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests about consumer offsets and queue offsets."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self.query_consumer_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.update_consumer_offset,
            RequestCode.GET_MAX_OFFSET: self.get_max_offset,
            RequestCode.GET_MIN_OFFSET: self.get_min_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.get_earliest_store_time,
        }

    def query_consumer_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with a group's offset in a queue.

        In a young queue, a new group starts at offset 0, regardless of its members' ConsumeFromWhere. The group then receives the
        messages that were sent just before its first consumer started.
        """
        header = command.decode_header(QueryConsumerOffsetRequestHeader)
        refuse_illegal_consumer_group(header.consumer_group)
        offset = self._offsets.get(header.consumer_group, header.topic, header.queue_id)
        if offset is None or offset < 0:
            if not self._young.has(header.topic.encode(), header.queue_id):
                remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                return encode_response(command, ResponseCode.QUERY_NOT_FOUND, remark=remark)
            offset = 0
        return encode_response(command, ResponseCode.SUCCESS, QueryConsumerOffsetResponseHeader(offset=offset))

    def update_consumer_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Commits a group's offset."""
        header = command.decode_header(UpdateConsumerOffsetRequestHeader)
        self._commits.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_max_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the offset after a queue's last message."""
        header = command.decode_header(GetMaxOffsetRequestHeader)
        offset = self._store.max_offset(header.topic.encode(), header.queue_id)
        return encode_response(command, ResponseCode.SUCCESS, GetMaxOffsetResponseHeader(offset=offset))

    def get_min_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the offset of a queue's oldest message."""
        header = command.decode_header(GetMinOffsetRequestHeader)
        offset = self._store.min_offset(header.topic.encode(), header.queue_id)
        return encode_response(command, ResponseCode.SUCCESS, GetMinOffsetResponseHeader(offset=offset))

    def search_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the queue offset of the message whose store timestamp is nearest to the requested time."""
        header = command.decode_header(SearchOffsetRequestHeader)
        offset = self._store.offset_by_time(header.topic.encode(), header.queue_id, header.timestamp)
        return encode_response(command, ResponseCode.SUCCESS, SearchOffsetResponseHeader(offset=offset))

    def get_earliest_store_time(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the store time of a queue's oldest message, or -1 if the queue is empty."""
        header = command.decode_header(GetEarliestMsgStoretimeRequestHeader)
        topic = header.topic.encode()
        timestamp = self._store.store_time(topic, header.queue_id, self._store.min_offset(topic, header.queue_id))
        return encode_response(command, ResponseCode.SUCCESS, GetEarliestMsgStoretimeResponseHeader(timestamp=timestamp))
