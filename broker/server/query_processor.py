"""Single messages, by key or by where they are stored (RocketMQ's QueryMessageProcessor)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.frame import MAX_FRAME_LENGTH
from broker.protocol.headers import QueryMessageRequestHeader, QueryMessageResponseHeader, ViewMessageRequestHeader
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler, RequestRefused
from broker.store import CorruptRecord, MessageStore, RecordNotFound

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
MOST_BY_UNIQUE_KEY: Final = 32
MOST_MESSAGES: Final = 1024
MOST_BYTES: Final = MAX_FRAME_LENGTH - 64 * 1024
"""A longer answer would cost the client its connection."""


class QueryProcessor:
    """Finds messages without consuming them."""

    def __init__(self, *, store: MessageStore) -> None:
        self._store = store

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Request code -> method."""
        return {RequestCode.QUERY_MESSAGE: self.query_message, RequestCode.VIEW_MESSAGE_BY_ID: self.view_message}

    def query_message(self, connection: Connection, command: RemotingCommand) -> bytes:
        """The messages of a topic with a key, or with the id that their producer gave them."""
        header = command.decode_header(QueryMessageRequestHeader)
        is_unique_key = command.ext_fields().get(UNIQUE_KEY_QUERY, "").lower() == "true"
        most = MOST_BY_UNIQUE_KEY if is_unique_key else max(1, min(header.max_num, MOST_MESSAGES))
        topic, begin_ms, end_ms = header.topic.encode(), header.begin_timestamp, header.end_timestamp
        found = self._store.query(topic, header.key, most, begin_ms, end_ms, MOST_BYTES)
        reach = QueryMessageResponseHeader(
            index_last_update_timestamp=found.index_last_update_timestamp,
            index_last_update_phy_offset=found.index_last_update_offset,
        )
        if not found.records:
            remark = "can not find message, maybe time range not correct"
            return encode_response(command, ResponseCode.QUERY_NOT_FOUND, reach, remark=remark)
        return encode_response(command, ResponseCode.SUCCESS, reach, b"".join(found.records))

    def view_message(self, connection: Connection, command: RemotingCommand) -> bytes:
        """The message at a commit log offset, which an offset message id holds."""
        header = command.decode_header(ViewMessageRequestHeader)
        try:
            record = self._store.read_queued(header.offset)
        except (RecordNotFound, CorruptRecord):
            remark = f"can not find message by the offset, {header.offset}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark) from None
        return encode_response(command, ResponseCode.SUCCESS, body=record)
