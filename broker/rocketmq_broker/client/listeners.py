"""The interfaces that a program implements: listeners, their results, and the context of a call."""

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
    """Runs and checks the local transactions of transactional messages (RocketMQ's TransactionListener).

    Each method is a function or an async function. Functions run in threads of the client. Async functions run on its event
    loop and must not block it. A method that raises an exception or returns None counts as UNKNOWN.
    """

    def execute_local_transaction(
        self, message: Message, arg: object
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Runs the local transaction after the half message is stored. Returns its result.

        `message.transaction_id` is set. `arg` is the argument of `send_message_in_transaction`.
        """
        ...

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Returns the result of the local transaction `message.transaction_id`. Read the result from durable storage.

        `message.transaction_check_times` is the number of check-backs, including this one.
        """
        ...


TransactionListeners = TransactionListener | Mapping[str, TransactionListener]
"""One listener for all topics, or a dict of listeners by topic. The key `*` stands for all other topics."""


class ConsumeStatus(Enum):
    """The result of a message listener (RocketMQ's ConsumeConcurrentlyStatus and ConsumeOrderlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    """The result for messages that were not consumed.

    A concurrent consumer receives them again after a delay, up to max_reconsume_times. An orderly consumer pauses the queue.
    """


@dataclass(slots=True)
class ConsumeContext:
    """The context of a listener's call: the messages' queue, and the redelivery delays, which the listener may set."""

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """The delay level for RECONSUME_LATER. Use -1 for the dead-letter topic, or 0 to let the broker choose (3 + attempts)."""
    suspend_current_queue_time_ms: int = 1000
    """The pause of the queue in milliseconds (10 to 30,000) for RECONSUME_LATER in an orderly consumer."""
    postponed: dict[int, int | None] = field(default_factory=dict)
    """The delay levels of messages passed to `reconsume_later`, keyed by queue offset."""
    given_way: set[int] = field(default_factory=set)
    """The queue offsets of messages passed to `give_way`, whose redelivery count does not increase."""
    withdrawn: Withdrawal = field(default_factory=Withdrawal, repr=False)
    """An event that the consumer sets when the listener must stop handling the messages."""

    @property
    def is_withdrawn(self) -> bool:
        """Returns True if the listener must stop, because the consumer shuts down or has lost the queue in a rebalance."""
        return self.withdrawn.is_set()

    def hold(self, seconds: float) -> None:
        """Waits in the listener's thread and keeps the messages. Use it while a required resource is unavailable.

        A listener may keep its messages for any time, because this client has no consumeTimeout. While the listener waits, the
        consumer stays in its group, sends heartbeats, renews locks, and pulls at most `pull_threshold_for_queue` messages ahead.
        Raises MessagesWithdrawn, which must not be caught, when the listener must stop. Raises NotRunning on an event loop.
        """
        if _is_on_an_event_loop():
            raise NotRunning("hold() would block the event loop: in an async listener use await context.hold_async(seconds)")
        if self.withdrawn.wait(seconds):
            raise self._were_withdrawn()

    async def hold_async(self, seconds: float) -> None:
        """Waits in an async listener, and keeps the messages. Raises MessagesWithdrawn when the listener must stop."""
        if await self.withdrawn.wait_async(seconds):
            raise self._were_withdrawn()

    def reconsume_later(self, message: MessageExt, delay_level: int | None = None) -> None:
        """Marks one message of a batch for redelivery. The listener then returns CONSUME_SUCCESS for the remaining messages.

        The default delay level is `delay_level_when_next_consume`. In an orderly consumer, the first marked message and all
        messages after it are delivered again.
        """
        self.postponed[message.queue_offset] = delay_level

    def give_way(self, message: MessageExt, delay_level: int) -> None:
        """Marks one message of a batch for redelivery after a delay, without increasing its redelivery count.

        Use this method for a message that waits for an unavailable resource while other messages wait for the thread. The message
        is sent to the group's retry topic. In an orderly consumer, the message is instead delivered again in order, as with
        `reconsume_later`.
        """
        self.postponed[message.queue_offset] = delay_level
        self.given_way.add(message.queue_offset)

    def _were_withdrawn(self) -> MessagesWithdrawn:
        return MessagesWithdrawn(f"the messages of {self.message_queue} were withdrawn from their listener")


MessageListener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus | Awaitable[ConsumeStatus | None] | None]
"""A function, which runs in a thread of the client, or an async function, which runs on its event loop.

An async function must not block the loop. None and all exceptions except MessagesWithdrawn count as RECONSUME_LATER.
"""


def _is_on_an_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
