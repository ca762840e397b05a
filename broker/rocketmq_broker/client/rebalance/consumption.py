"""The way of messages after their pull: the part in which concurrent and orderly consumers differ."""

from __future__ import annotations

from typing import Protocol

from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.message import MessageExt, MessageQueue


class Consumption(Protocol):
    """The port that takes messages to the listener and its answer back (RocketMQ's ConsumeMessageService)."""

    async def may_begin(self, queue: MessageQueue) -> bool:
        """Returns whether the queue may begin now; in order, whether its lock was free."""

    def arrived(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Takes the messages of a pull."""

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        """Returns when no listener on the dropped queue can overlap with the next owner's."""

    async def release(self, process_queue: ProcessQueue) -> None:
        """Lets the next owner begin, after the offset is stored."""

    async def stop(self, timeout_s: float) -> None:
        """Starts no further call, and waits up to `timeout_s` for running listeners."""
