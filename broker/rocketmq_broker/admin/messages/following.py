"""Follows a topic for the command `tail`."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from rocketmq_broker.admin.broker_requests.figures import topic_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError, Refused
from rocketmq_broker.admin.messages.content import MessageContent, content_of
from rocketmq_broker.admin.output.printing import print_error
from rocketmq_broker.admin.session import Session
from rocketmq_broker.protocol.bodies.topic import TopicOffset

POLL_INTERVAL_S: Final = 0.5
_PULL_MESSAGES: Final = 32

Line = tuple[str, MessageContent]
"""A pair of a broker's address and one of that broker's messages."""


async def follow(session: Session, topic: str, last: int) -> AsyncGenerator[Line]:
    """Yields the last messages of a topic, then new messages, forever.

    A broker that becomes unreachable later is reported once and polled until it responds. Messages of one queue keep
    their order. Messages of several queues that arrive in the same poll are sorted by store time. Raises CannotAsk, or
    Refused if no broker has the topic.
    """
    followers = [_Follower(broker, topic) for broker in session.brokers]
    for line in await _first_lines(followers, topic, last):
        yield line
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        for line in _in_order([line for follower in followers for line in await follower.new_lines()]):
            yield line


async def newest_messages(session: Session, topic: str, last: int) -> list[Line]:
    """Returns the last messages of a topic, oldest first. Raises CannotAsk, or Refused if no broker has the topic."""
    return await _first_lines([_Follower(broker, topic) for broker in session.brokers], topic, last)


async def _first_lines(followers: list["_Follower"], topic: str, last: int) -> list[Line]:
    lines = [line for follower in followers for line in await follower.begin(last)]
    if not any(follower.has_topic for follower in followers):
        raise Refused(f"topic not found: {topic}; run rocketmq-admin topics to list the topics")
    return _in_order(lines)[-last:] if last else []


class _Follower:
    """Reads new messages of the topic from one broker."""

    def __init__(self, broker: BrokerRequests, topic: str) -> None:
        self.has_topic = False
        self._broker = broker
        self._topic = topic
        self._positions: dict[int, int] = {}
        self._is_unreachable = False

    async def begin(self, last: int) -> list[Line]:
        """Returns the newest messages, at most `last` from each queue.

        `new_lines` returns the messages that are stored later. Raises CannotAsk or Refused.
        """
        lines: list[Line] = []
        for queue_id, extent in (await self._extents()).items():
            self._positions[queue_id] = max(extent.min_offset, extent.max_offset - last, 0)
            lines += await self._read(queue_id, extent.max_offset)
        return lines

    async def new_lines(self) -> list[Line]:
        """Returns the messages stored since the last call; none while the broker is unreachable."""
        try:
            lines: list[Line] = []
            for queue_id, extent in (await self._extents()).items():
                position = self._positions.setdefault(queue_id, 0)
                if extent.max_offset < position:
                    self._positions[queue_id] = extent.max_offset  # messages lost by a crash are stored again
                elif extent.max_offset > position:
                    lines += await self._read(queue_id, extent.max_offset)
        except AdminError as error:
            if not self._is_unreachable:
                print_error(f"{error}; retrying until the broker responds")
            self._is_unreachable = True
        else:
            self._is_unreachable = False
        return lines

    async def _extents(self) -> dict[int, TopicOffset]:
        stats = await topic_stats(self._broker, self._topic)
        if stats is None:
            return {}
        self.has_topic = True
        return {queue.queue_id: extent for queue, extent in sorted(stats.offset_table.items())}

    async def _read(self, queue_id: int, end: int) -> list[Line]:
        lines: list[Line] = []
        while (position := self._positions[queue_id]) < end:
            records, next_offset = await self._broker.pull(self._topic, queue_id, position, min(_PULL_MESSAGES, end - position))
            if next_offset <= position:
                break
            self._positions[queue_id] = next_offset
            lines += [(self._broker.address, content_of(record)) for record in records]
        return lines


def _in_order(lines: list[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line[1].stored_ms, line[1].commit_log_offset))
