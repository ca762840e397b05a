"""Pulls a broker's messages queue by queue, with the requests of rocketmq_broker.admin. Apache's brokers support them too."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rocketmq_broker.admin.broker_requests.figures import consume_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError, CannotAsk, Refused
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import Record
from rocketmq_commitlog.errors import UnreadableStore

RANGE_MESSAGES: Final = 100_000
_PULL_MESSAGES: Final = 1024
"""The maximum number of messages of a pull request. A broker may return fewer, depending on its settings."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueRange:
    """A range of a queue's messages, from the queue offset `first` (inclusive) to `end` (exclusive)."""

    topic: str
    queue_id: int
    first: int
    end: int


def queue_ranges(address: str, names: Sequence[str] = (), range_messages: int = RANGE_MESSAGES) -> list[QueueRange]:
    """Returns ranges that cover the broker's messages in the topics with these names, or in all topics.

    Raises UnreadableStore.
    """

    async def ask(broker: BrokerRequests) -> list[QueueRange]:
        ranges = []
        for topic, queues in sorted((await broker.topics()).items()):
            for queue_id in range(queues if not names or topic in names else 0):
                first, end = await broker.offsets(topic, queue_id)
                starts = range(first, end, range_messages)
                ranges += [QueueRange(topic, queue_id, start, min(start + range_messages, end)) for start in starts]
        return ranges

    return _asked(address, ask)


def pull(address: str, part: QueueRange) -> Iterator[list[Record]]:
    """Yields the messages of a range, page by page. Raises UnreadableStore."""
    pages = _pages(address, part)
    with asyncio.Runner() as runner:
        try:
            while (page := runner.run(_next(pages))) is not None:
                yield page
        except AdminError as error:
            raise UnreadableStore(str(error)) from None
        finally:
            runner.run(pages.aclose())


def consumer_offsets(address: str, consumer_group: str, topic: str) -> Mapping[int, int] | None:
    """Returns the group's next offset in each queue of the topic, or None if the broker refuses the request.

    Raises UnreadableStore.
    """

    async def ask(broker: BrokerRequests) -> Mapping[int, int] | None:
        try:
            table = (await consume_stats(broker, consumer_group, topic)).offset_table
        except Refused:
            return None
        return {queue.queue_id: offsets.consumer_offset for queue, offsets in table.items() if queue.topic == topic}

    return _asked(address, ask)


def decided_without_record(address: str) -> range:
    """Returns the queue offsets of decided half messages, for brokers that hide their op messages, like Apache's.

    The consumer offset of the broker's system group is the offset of the first undecided half message. Raises UnreadableStore.
    """

    async def ask(broker: BrokerRequests) -> range:
        queues = await broker.topics()
        if topics.OP_HALF_TOPIC in queues or topics.HALF_TOPIC not in queues:
            return range(0)
        first, end = await broker.offsets(topics.HALF_TOPIC, 0)
        table = (await consume_stats(broker, topics.TRANSACTION_CONSUMER_GROUP, topics.HALF_TOPIC)).offset_table
        decided = [offsets.consumer_offset for queue, offsets in table.items() if queue.topic == topics.HALF_TOPIC]
        return range(first, min(end, max(decided, default=first)))

    return _asked(address, ask)


def first_stored_ms(address: str, names: Sequence[str]) -> int:
    """Returns the time, in milliseconds since the epoch, from which the broker has all messages of these topics.

    Returns 0 if no message has expired. Raises UnreadableStore.
    """

    async def ask(broker: BrokerRequests) -> int:
        begins_ms = 0
        for topic, queues in (await broker.topics()).items():
            for queue_id in range(queues if topic in names else 0):
                first, end = await broker.offsets(topic, queue_id)
                if 0 < first < end:
                    records, _ = await broker.pull(topic, queue_id, first, 1)
                    begins_ms = max([begins_ms, *(record.store_timestamp for record in records)])
        return begins_ms

    return _asked(address, ask)


async def _next(pages: AsyncGenerator[list[Record]]) -> list[Record] | None:
    return await anext(pages, None)


async def _pages(address: str, part: QueueRange) -> AsyncGenerator[list[Record]]:
    offset = part.first
    async with opened_session(Target(broker_addr=address)) as session:
        (broker,) = session.brokers
        while offset < part.end:
            wanted = min(_PULL_MESSAGES, part.end - offset)
            records, next_offset = await broker.pull(part.topic, part.queue_id, offset, wanted)
            if next_offset <= offset:
                raise CannotAsk(
                    f"broker {address} has no message at queue offset {offset} of {part.topic}, queue {part.queue_id}"
                )
            offset = next_offset
            yield [record for record in records if record.queue_offset < part.end]


def _asked(address: str, question: Callable[[BrokerRequests], Awaitable[T]]) -> T:
    async def ask() -> T:
        async with opened_session(Target(broker_addr=address)) as session:
            return await question(session.brokers[0])

    try:
        return asyncio.run(ask())
    except AdminError as error:
        raise UnreadableStore(str(error)) from None
