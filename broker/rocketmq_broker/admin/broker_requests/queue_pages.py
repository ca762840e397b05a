"""Reads a queue in pages, from either end, with requests that Apache's brokers also support."""

from collections.abc import AsyncIterator
from typing import Final

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.message.record import Record

_PULL_MESSAGES: Final = 32


async def pages(
    requests: BrokerRequests, topic: str, queue_id: int = 0, *, newest_first: bool = True
) -> AsyncIterator[list[Record]]:
    """Yields the current messages of a queue, in pages.

    The messages are sorted from newest to oldest, or from oldest to newest if `newest_first` is False. A page may be empty.
    """
    first, end = await requests.offsets(topic, queue_id)
    while first < end:
        if newest_first:
            begin = max(first, end - _PULL_MESSAGES)
            yield (await _page(requests, topic, queue_id, begin, end))[::-1]
            end = begin
        else:
            next_first = min(first + _PULL_MESSAGES, end)
            yield await _page(requests, topic, queue_id, first, next_first)
            first = next_first


async def _page(requests: BrokerRequests, topic: str, queue_id: int, begin: int, end: int) -> list[Record]:
    page: list[Record] = []
    offset = begin
    while offset < end:
        records, next_offset = await requests.pull(topic, queue_id, offset, end - offset)
        page += [record for record in records if record.queue_offset < end]
        if next_offset <= offset:
            break
        offset = next_offset
    return page
