"""The interface of a program to the client's calls: listeners, their answers, and the context of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from rocketmq_broker.client.errors import MessagesWithdrawn, NotRunning
from rocketmq_broker.client.producer.send_result import LocalTransactionState
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.message import Message, MessageExt, MessageQueue


class TransactionListener(Protocol):
    """The two halves of a transactional message's local side (RocketMQ's TransactionListener).

    Each is a function or an async function. Functions run in threads of the client, never on its event loop; async functions run
    on its event loop and must not block it. One that raises or returns None means UNKNOWN.
    """

    def execute_local_transaction(
        self, message: Message, arg: object
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Does the local transaction. The half message is stored; `message.transaction_id` is set; `arg` is the sender's."""
        ...

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Returns how the local transaction of `message.transaction_id` ended. Read it from durable storage.

        `message.transaction_check_times` is the number of checks, this one included.
        """
        ...


TransactionListeners = TransactionListener | Mapping[str, TransactionListener]
"""One listener, or one for each topic by its name; the one for `*` serves all other topics."""


class ConsumeStatus(Enum):
    """A message listener's answer (RocketMQ's ConsumeConcurrentlyStatus and ConsumeOrderlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    """Not consumed. Concurrent: again after a delay, up to max_reconsume_times. Orderly: the queue waits a moment."""


@dataclass(slots=True)
class ConsumeContext:
    """The facts of a listener's call, and the settings that it may make before it answers."""

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """For RECONSUME_LATER: -1 to the dead letters, 0 for the broker's choice (3 + attempts), above 0 that delay level."""
    suspend_current_queue_time_ms: int = 1000
    """For RECONSUME_LATER of an orderly consumer: the queue's pause (10 ms to 30 s)."""
    postponed: dict[int, int | None] = field(default_factory=dict)
    """Delay levels of the messages given to `reconsume_later`, by queue offset."""
    given_way: set[int] = field(default_factory=set)
    """Queue offsets of those that use up no redelivery."""
    withdrawn: Withdrawal = field(default_factory=Withdrawal, repr=False)
    """Set by the consumer when the listener must let go of the messages."""

    @property
    def is_withdrawn(self) -> bool:
        """Returns whether the listener must let go of the messages: the consumer shuts down, or a rebalance took the queue."""
        return self.withdrawn.is_set()

    def hold(self, seconds: float) -> None:
        """Waits in the listener's thread and keeps the messages: for a listener that cannot continue for a reason outside them.

        A listener may hold its messages for any time. Meanwhile the consumer stays in its group, sends heartbeats,
        keeps its locks, and pulls ahead only up to `pull_threshold_for_queue`. RocketMQ's consumeTimeout does not exist here.
        Raises MessagesWithdrawn as soon as the listener must let go: do not catch it. Raises NotRunning on an event loop.
        """
        if _is_on_an_event_loop():
            raise NotRunning("hold() would stop the event loop: in an async listener write await context.hold_async(seconds)")
        if self.withdrawn.wait(seconds):
            raise self._were_withdrawn()

    async def hold_async(self, seconds: float) -> None:
        """Waits in an async listener and keeps the messages. Promises and raises the same as `hold`."""
        if await self.withdrawn.wait_async(seconds):
            raise self._were_withdrawn()

    def reconsume_later(self, message: MessageExt, delay_level: int | None = None) -> None:
        """Marks one message of a batch for redelivery although the listener answers CONSUME_SUCCESS for the others.

        The default delay level is `delay_level_when_next_consume`. In order, the first marked message and all after it repeat.
        """
        self.postponed[message.queue_offset] = delay_level

    def give_way(self, message: MessageExt, delay_level: int) -> None:
        """Marks one message of a batch for redelivery after this delay, which uses up no redelivery.

        For a message that cannot be held longer, because others wait for its thread, for a reason outside it. It goes to the
        group's retry topic with its count of redeliveries unchanged. In order, it repeats in its place, as by `reconsume_later`.
        """
        self.postponed[message.queue_offset] = delay_level
        self.given_way.add(message.queue_offset)

    def _were_withdrawn(self) -> MessagesWithdrawn:
        return MessagesWithdrawn(f"the messages of {self.message_queue} were withdrawn from their listener")


MessageListener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus | Awaitable[ConsumeStatus | None] | None]
"""A function, called in a thread of the client, or an async function, which runs on its event loop and must not block it.

An exception or None means RECONSUME_LATER, except the exceptions of `ConsumeContext.hold`.
"""


def _is_on_an_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
