"""What was appended and is not visible yet, and the queue offsets that come next (RocketMQ's topicQueueTable)."""

from __future__ import annotations

from rocketmq_broker.store.queues.dispatch import DispatchRequest


class Backlog:
    """Appended records, in the order of the commit log, that readers do not see yet."""

    __slots__ = ("next_offsets", "requests")

    def __init__(self) -> None:
        self.requests: list[DispatchRequest] = []
        self.next_offsets: dict[tuple[bytes, int], int] = {}
        """By topic and queue id: the queue offset that the next message gets."""

    def take(self, position: int) -> list[DispatchRequest]:
        """Those that end at or before that commit log offset; they are here no longer."""
        waiting = self.requests
        if not waiting:
            return waiting
        last = waiting[-1]
        if last.commit_log_offset + last.size <= position:
            self.requests = []
            return waiting
        count = 0
        for request in waiting:
            if request.commit_log_offset + request.size > position:
                break
            count += 1
        self.requests = waiting[count:]
        return waiting[:count]

    def forget_after(self, position: int) -> None:
        """Those from that commit log offset on are lost: their queue offsets are given out again."""
        kept = []
        for request in reversed(self.requests):
            if request.commit_log_offset < position:
                kept.append(request)
            elif request.is_queued:
                self.next_offsets[(request.topic, request.queue_id)] = request.queue_offset
        self.requests = kept[::-1]

    def forget_topic(self, topic: bytes) -> None:
        """Messages on their way to queues that are deleted must not come into new ones."""
        for key in [key for key in self.next_offsets if key[0] == topic]:
            del self.next_offsets[key]
        self.requests = [request for request in self.requests if request.topic != topic]

    def first_offset(self, end: int) -> int:
        """Where in the commit log the first of them is; `end` if there is none."""
        return self.requests[0].commit_log_offset if self.requests else end
