"""What happens to messages after they were pulled: the part in which concurrent and orderly consumers differ."""

from __future__ import annotations

from typing import Protocol

from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.message import MessageExt, MessageQueue


class Consumption(Protocol):
    """Takes messages to the listener and its answer back to the process queue (RocketMQ's ConsumeMessageService)."""

    async def may_begin(self, queue: MessageQueue) -> bool:
        """Whether the queue may be begun now; in order, whether its lock was had."""

    def arrived(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """These were pulled."""

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        """The queue is dropped: returns when no listener works on it that may not overlap with the next owner's."""

    async def release(self, process_queue: ProcessQueue) -> None:
        """Its offset is kept: the next owner may begin."""

    async def stop(self, timeout_s: float) -> None:
        """Begin nothing further, and wait at most that long for listeners that run."""
