"""Batches of records that are written to the commit log, but not visible yet."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rocketmq_broker.server.durability.put_times import PutTimes


class _Batch(NamedTuple):
    end_position: int
    requests: int
    began_s: float
    """The time at which its first request was appended, on the event loop's clock."""


class WrittenBatches:
    """The batches, oldest first."""

    def __init__(self, put_times: PutTimes) -> None:
        """`put_times` observes the time of each batch."""
        self._batches: deque[_Batch] = deque()
        self._put_times = put_times

    def add(self, end_position: int, requests: int, began_s: float) -> None:
        """Adds a batch of so many requests that ends at that commit log offset."""
        self._batches.append(_Batch(end_position, requests, began_s))

    def end_of_first(self, requests: int, otherwise: int) -> int:
        """Returns the end of the first batches with so many requests in all; `otherwise` if there are fewer."""
        for batch in self._batches:
            requests -= batch.requests
            if requests <= 0:
                return batch.end_position
        return otherwise

    def shown(self, position: int, now_s: float) -> None:
        """Removes the batches before that offset, which are visible now, and observes their times."""
        while self._batches and self._batches[0].end_position <= position:
            batch = self._batches.popleft()
            self._put_times.observe(now_s - batch.began_s, batch.requests)

    def drop_behind(self, position: int) -> None:
        """Removes the batches after that offset, which are lost."""
        while self._batches and self._batches[-1].end_position > position:
            self._batches.pop()

    def overdue(self, began_before_s: float) -> tuple[int, float | None]:
        """Returns the end of the last batch that began by then, -1 for none, and the start of the first later one."""
        position = -1
        for batch in self._batches:
            if batch.began_s > began_before_s:
                return position, batch.began_s
            position = batch.end_position
        return position, None
