"""Offsets: how far groups have come, and how far queues reach (ConsumerManageProcessor, AdminBrokerProcessor in RocketMQ)."""

from __future__ import annotations

from collections.abc import Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers import (
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
from rocketmq_broker.remoting.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler
from rocketmq_broker.server.topics.names import refuse_illegal_consumer_group
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.store import ConsumerOffsets, MessageStore


class OffsetProcessor:
    """Consumer offsets are kept in memory; the app brings them to the disk every few seconds, as RocketMQ does."""

    def __init__(
        self, *, store: MessageStore, offsets: ConsumerOffsets, offset_commits: OffsetCommits, young_queue_bytes: int
    ) -> None:
        """A queue counts as young while no more than `young_queue_bytes` were stored since its first message."""
        self._store = store
        self._offsets = offsets
        self._commits = offset_commits
        self._young_queue_bytes = young_queue_bytes

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Where a group stands, and where a queue begins and ends."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self.query_consumer_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.update_consumer_offset,
            RequestCode.GET_MAX_OFFSET: self.get_max_offset,
            RequestCode.GET_MIN_OFFSET: self.get_min_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.get_earliest_store_time,
        }

    def query_consumer_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Where a group goes on in a queue.

        A group that never was there starts a young queue at 0, whatever it would prefer: a message sent before its first
        consumer was ready is not lost to it.
        """
        header = command.decode_header(QueryConsumerOffsetRequestHeader)
        refuse_illegal_consumer_group(header.consumer_group)
        offset = self._offsets.get(header.consumer_group, header.topic, header.queue_id)
        if offset is None or offset < 0:
            if not self._is_young(header.topic.encode(), header.queue_id):
                remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                return encode_response(command, ResponseCode.QUERY_NOT_FOUND, remark=remark)
            offset = 0
        return encode_response(command, ResponseCode.SUCCESS, QueryConsumerOffsetResponseHeader(offset=offset))

    def update_consumer_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """A group says how far it has come."""
        header = command.decode_header(UpdateConsumerOffsetRequestHeader)
        self._commits.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_max_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """The offset after a queue's last message."""
        header = command.decode_header(GetMaxOffsetRequestHeader)
        offset = self._store.max_offset(header.topic.encode(), header.queue_id)
        return encode_response(command, ResponseCode.SUCCESS, GetMaxOffsetResponseHeader(offset=offset))

    def get_min_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """The offset of a queue's oldest message."""
        header = command.decode_header(GetMinOffsetRequestHeader)
        offset = self._store.min_offset(header.topic.encode(), header.queue_id)
        return encode_response(command, ResponseCode.SUCCESS, GetMinOffsetResponseHeader(offset=offset))

    def search_offset(self, connection: Connection, command: RemotingCommand) -> bytes:
        """The offset that stands for a time."""
        header = command.decode_header(SearchOffsetRequestHeader)
        offset = self._store.offset_by_time(header.topic.encode(), header.queue_id, header.timestamp)
        return encode_response(command, ResponseCode.SUCCESS, SearchOffsetResponseHeader(offset=offset))

    def get_earliest_store_time(self, connection: Connection, command: RemotingCommand) -> bytes:
        """When a queue's oldest message was stored; -1 if it has none."""
        header = command.decode_header(GetEarliestMsgStoretimeRequestHeader)
        topic = header.topic.encode()
        timestamp = self._store.store_time(topic, header.queue_id, self._store.min_offset(topic, header.queue_id))
        return encode_response(command, ResponseCode.SUCCESS, GetEarliestMsgStoretimeResponseHeader(timestamp=timestamp))

    def _is_young(self, topic: bytes, queue_id: int) -> bool:
        """Whether the queue still has its first message, and that is near the log's end (checkInDiskByConsumeOffset)."""
        if self._store.min_offset(topic, queue_id) > 0:
            return False
        first = self._store.commit_log_offset(topic, queue_id, 0)
        return first is None or self._store.commit_log_max_offset - first <= self._young_queue_bytes
