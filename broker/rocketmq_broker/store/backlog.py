"""The appended records that are not visible yet, and the next offset of each queue (RocketMQ's topicQueueTable)."""

from rocketmq_broker.store.queues.dispatch import DispatchRequest


class Backlog:
    """The appended records that are not visible to readers yet, in the order of the commit log."""

    __slots__ = ("next_offsets", "requests")

    def __init__(self) -> None:
        self.requests: list[DispatchRequest] = []
        self.next_offsets: dict[tuple[bytes, int], int] = {}
        """Maps a topic and queue id to the queue offset of the next message."""

    def take(self, position: int) -> list[DispatchRequest]:
        """Removes and returns the records that end at or before `position`, a commit log offset."""
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
        """Drops the records at and after `position`, a commit log offset. New records will reuse their queue offsets."""
        kept = []
        for request in reversed(self.requests):
            if request.commit_log_offset < position:
                kept.append(request)
            elif request.is_queued:
                self.next_offsets[(request.topic, request.queue_id)] = request.queue_offset
        self.requests = kept[::-1]

    def forget_topic(self, topic: bytes) -> None:
        """Drops the topic's records, so that they cannot enter new queues after the old ones are deleted."""
        for key in [key for key in self.next_offsets if key[0] == topic]:
            del self.next_offsets[key]
        self.requests = [request for request in self.requests if request.topic != topic]

    def first_offset(self, end: int) -> int:
        """Returns the commit log offset of the first record, or `end` if there is none."""
        return self.requests[0].commit_log_offset if self.requests else end
