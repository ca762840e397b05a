"""What was written to the commit log in one go each, and is not visible yet."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rocketmq_broker.server.durability.put_times import PutTimes


class _Batch(NamedTuple):
    end_position: int
    requests: int
    began_s: float
    """When its first request was appended, on the event loop's clock."""


class WrittenBatches:
    """Oldest first."""

    def __init__(self, put_times: PutTimes) -> None:
        """`put_times` hears how long each batch took."""
        self._batches: deque[_Batch] = deque()
        self._put_times = put_times

    def add(self, end_position: int, requests: int, began_s: float) -> None:
        """So many requests were written up to that commit log offset."""
        self._batches.append(_Batch(end_position, requests, began_s))

    def end_of_first(self, requests: int, otherwise: int) -> int:
        """Where the first batches end that hold so many requests; `otherwise` if all together hold fewer."""
        for batch in self._batches:
            requests -= batch.requests
            if requests <= 0:
                return batch.end_position
        return otherwise

    def shown(self, position: int, now_s: float) -> None:
        """Everything before that offset is visible by now."""
        while self._batches and self._batches[0].end_position <= position:
            batch = self._batches.popleft()
            self._put_times.observe(now_s - batch.began_s, batch.requests)

    def drop_behind(self, position: int) -> None:
        """Everything behind that offset is lost."""
        while self._batches and self._batches[-1].end_position > position:
            self._batches.pop()

    def overdue(self, began_before_s: float) -> tuple[int, float | None]:
        """Where the last batch ends that began by then, -1 for none, and when the first later one began."""
        position = -1
        for batch in self._batches:
            if batch.began_s > began_before_s:
                return position, batch.began_s
            position = batch.end_position
        return position, None
