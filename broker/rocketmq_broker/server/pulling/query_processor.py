"""Finds single messages by key or position (RocketMQ's QueryMessageProcessor)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeAlias, cast

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH
from rocketmq_broker.protocol.headers import QueryMessageRequestHeader, QueryMessageResponseHeader, ViewMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.store import MessageStore, QueriedMessages, UnreadableRecord

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
MAX_BY_UNIQUE_KEY: Final = 32
MAX_MESSAGES: Final = 1024
MAX_BYTES: Final = MAX_FRAME_LENGTH - 64 * 1024
"""A longer answer would cost the client its connection."""
SLICE_S: Final = 0.01
MAX_SLICES: Final = 1000
"""Of one query: enough for some twenty million index entries, a whole file of them."""
MAX_LONG_QUERIES: Final = 64
MAX_LONG_QUERIES_OF_A_CONNECTION: Final = 16
"""They take turns, so one client lets the others wait for so many of its own at most."""

Steps: TypeAlias = Generator[None, None, QueriedMessages]


class QueryProcessor:
    """Finds messages without consuming them."""

    def __init__(self, *, store: MessageStore, tasks: Tasks, steady_ns: Callable[[], int]) -> None:
        """`steady_ns` shows nanoseconds since some moment or other."""
        self._store = store
        self._tasks = tasks
        self._steady_ns = steady_ns
        self._turn = asyncio.Lock()
        self._long_queries: Counter[Connection] = Counter()

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """The handlers that find messages by key, or read one at a commit log offset."""
        return {RequestCode.QUERY_MESSAGE: self.query_message, RequestCode.VIEW_MESSAGE_BY_ID: self.view_message}

    def query_message(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Answers with the newest messages of a topic with a key, or with their producer's message id.

        A long query, past very many other messages of the same hash, goes on in slices and is answered later.
        """
        header = command.decode_header(QueryMessageRequestHeader)
        is_unique_key = command.ext_fields().get(UNIQUE_KEY_QUERY, "").lower() == "true"
        most = MAX_BY_UNIQUE_KEY if is_unique_key else max(1, min(header.max_num, MAX_MESSAGES))
        topic, begin_ms, end_ms = header.topic.encode(), header.begin_timestamp, header.end_timestamp
        steps = self._store.query_in_steps(topic, header.key, most, begin_ms, end_ms, MAX_BYTES)
        found = _slice(steps, self._steady_ns)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        if found is not None:
            return _answer(reply_to, found)
        under_way = self._long_queries.total()
        if under_way >= MAX_LONG_QUERIES or self._long_queries[connection] >= MAX_LONG_QUERIES_OF_A_CONNECTION:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"{under_way} queries that take long are under way already")
        self._long_queries[connection] += 1
        self._tasks.start("a query that takes long", self._answer_later(steps, connection, reply_to))
        return None

    async def _answer_later(self, steps: Steps, connection: Connection, reply_to: ReplyTo) -> None:
        """Searches for one query at a time, so that other requests are served as well."""
        try:
            async with self._turn:
                for _ in range(MAX_SLICES):
                    await asyncio.sleep(0)
                    if (found := _slice(steps, self._steady_ns)) is not None:
                        connection.send(_answer(reply_to, found))
                        return
            remark = "the query takes too long: too many messages have keys of the same hash; ask for a shorter time"
            connection.send(encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=remark))
        except OSError as error:
            connection.send(encode_response(reply_to, ResponseCode.SYSTEM_ERROR, remark=str(error)))
        finally:
            self._long_queries[connection] -= 1
            if not self._long_queries[connection]:
                del self._long_queries[connection]

    def view_message(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Answers with the message at a commit log offset, which an offset message id holds."""
        header = command.decode_header(ViewMessageRequestHeader)
        try:
            record = self._store.read_queued(header.offset)
        except UnreadableRecord:
            remark = f"can not find message by the offset, {header.offset}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark) from None
        return encode_response(command, ResponseCode.SUCCESS, body=record)


def _slice(steps: Steps, steady_ns: Callable[[], int]) -> QueriedMessages | None:
    """Searches for a slice of time. Returns the result if the search ended, else None."""
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
