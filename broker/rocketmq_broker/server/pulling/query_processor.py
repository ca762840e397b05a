"""Finds messages by key, unique id or commit log offset (RocketMQ's QueryMessageProcessor)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeAlias, cast

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH
from rocketmq_broker.protocol.headers.topic import QueryMessageRequestHeader, QueryMessageResponseHeader, ViewMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.store import MessageStore, QueriedMessages, UnreadableRecord

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
MAX_BY_UNIQUE_KEY: Final = 32
MAX_MESSAGES: Final = 1024
MAX_BYTES: Final = MAX_FRAME_LENGTH - 64 * 1024
"""The maximum size of a response in bytes. Clients close the connection when they receive a longer frame."""
SLICE_S: Final = 0.01
MAX_SLICES: Final = 1000
"""The maximum number of slices of one query: enough for about 20 million index entries, which fill one index file.

A slice is the part of a search that runs for SLICE_S seconds in one turn of the event loop.
"""
MAX_LONG_QUERIES: Final = 64
MAX_LONG_QUERIES_OF_A_CONNECTION: Final = 16
"""The maximum number of long queries of a connection.

Long queries run one after another. The limit therefore restricts how long one client can delay the queries of others.
"""

Steps: TypeAlias = Generator[None, None, QueriedMessages]


class QueryProcessor:
    """Finds messages without consuming them."""

    def __init__(self, *, store: MessageStore, tasks: Tasks, steady_ns: Callable[[], int]) -> None:
        """Creates the processor. `steady_ns` is a monotonic clock in nanoseconds."""
        self._store = store
        self._tasks = tasks
        self._steady_ns = steady_ns
        self._turn = asyncio.Lock()
        self._long_queries: Counter[Connection] = Counter()

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers that find messages by key, or read a message at a commit log offset."""
        return {RequestCode.QUERY_MESSAGE: self.query_message, RequestCode.VIEW_MESSAGE_BY_ID: self.view_message}

    def query_message(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Responds with the newest messages of a topic that have a key or a unique id.

        If very many messages with other keys have the same hash, the query continues in slices, and the response is sent later.
        """
        header = command.decode_header(QueryMessageRequestHeader)
        is_unique_key = command.ext_fields().get(UNIQUE_KEY_QUERY, "").lower() == "true"
        limit = MAX_BY_UNIQUE_KEY if is_unique_key else max(1, min(header.max_num, MAX_MESSAGES))
        topic, begin_ms, end_ms = header.topic.encode(), header.begin_timestamp, header.end_timestamp
        steps = self._store.query_in_steps(topic, header.key, limit, begin_ms, end_ms, MAX_BYTES)
        found = _slice(steps, self._steady_ns)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        if found is not None:
            return _answer(reply_to, found)
        under_way = self._long_queries.total()
        if under_way >= MAX_LONG_QUERIES or self._long_queries[connection] >= MAX_LONG_QUERIES_OF_A_CONNECTION:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"too many long queries in progress: {under_way}; try again")
        self._long_queries[connection] += 1
        self._tasks.start("a long query", self._answer_later(steps, connection, reply_to))
        return None

    async def _answer_later(self, steps: Steps, connection: Connection, reply_to: ReplyTo) -> None:
        """Continues a long query and sends its response. Long queries run one at a time, with pauses for other requests."""
        try:
            async with self._turn:
                for _ in range(MAX_SLICES):
                    await asyncio.sleep(0)
                    if (found := _slice(steps, self._steady_ns)) is not None:
                        connection.send(_answer(reply_to, found))
                        return
            remark = "query timed out: too many messages have keys with the same hash; use a shorter time range"
            connection.send(encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=remark))
        except OSError as error:
            connection.send(encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=str(error)))
        finally:
            self._long_queries[connection] -= 1
            if not self._long_queries[connection]:
                del self._long_queries[connection]

    def view_message(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the message at a commit log offset, which is part of an offset message id."""
        header = command.decode_header(ViewMessageRequestHeader)
        try:
            record = self._store.read_queued(header.offset)
        except UnreadableRecord:
            remark = f"can not find message by the offset, {header.offset}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark) from None
        return encode_response(command, ResponseCode.SUCCESS, body=record)


def _slice(steps: Steps, steady_ns: Callable[[], int]) -> QueriedMessages | None:
    """Runs the search for SLICE_S seconds. Returns the result, or None if the search has not ended."""
    end_ns = steady_ns() + int(SLICE_S * 1e9)
    while steady_ns() < end_ns:
        try:
            next(steps)
        except StopIteration as end:
            return cast("QueriedMessages", end.value)
    return None


def _answer(reply_to: ReplyTo, found: QueriedMessages) -> bytes:
    reach = QueryMessageResponseHeader(
        index_last_update_timestamp=found.index_last_update_timestamp,
        index_last_update_phy_offset=found.index_last_update_offset,
    )
    if not found.records:
        remark = "can not find message, maybe time range not correct"
        return encode_response(reply_to, ResponseCode.QUERY_NOT_FOUND, reach, remark=remark)
    return encode_response(reply_to, ResponseCode.SUCCESS, reach, b"".join(found.records))
