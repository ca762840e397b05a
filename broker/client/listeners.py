"""What a program gives the client to be called with: listeners, their answers, and what they are told about the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from broker.client.errors import MessagesWithdrawn
from broker.client.producer.send_result import LocalTransactionState
from broker.message import Message, MessageExt, MessageQueue


class TransactionListener(Protocol):
    """The two halves of a transactional message's local side (RocketMQ's TransactionListener).

    Both run in threads of the client, never on its event loop. One that raises or returns None means UNKNOWN.
    """

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Do the local transaction. The half message is stored; `message.transaction_id` is set; `arg` is the sender's."""
        ...

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Say what became of the local transaction of `message.transaction_id`. Read it from where it is durable."""
        ...


class ConsumeStatus(Enum):
    """A message listener's answer (RocketMQ's ConsumeConcurrentlyStatus and ConsumeOrderlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    """Not now. Concurrent: again after a delay, up to max_reconsume_times. Orderly: the queue waits a moment."""


@dataclass(slots=True)
class ConsumeContext:
    """What a listener is told about the call, and what it may set before it answers."""

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """For RECONSUME_LATER: -1 to the dead letters, 0 as the broker sees fit (3 + attempts), above 0 that delay level."""
    suspend_current_queue_time_ms: int = 1000
    """For RECONSUME_LATER of an orderly consumer: how long the queue waits (10 ms to 30 s)."""
    postponed: dict[int, int | None] = field(default_factory=dict)
    """Queue offset -> delay level of the messages given to `reconsume_later`."""
    withdrawn: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set by the consumer when the listener has to let go of the messages."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether the messages are to be let go of: the consumer shuts down, or a rebalance took their queue away."""
        return self.withdrawn.is_set()

    def hold(self, seconds: float) -> None:
        """Wait in the listener's thread and keep the messages: for a listener that cannot go on through no fault of theirs.

        A listener may hold its messages for as long as it takes. Meanwhile the consumer stays in its group, sends heartbeats,
        keeps its locks, and pulls ahead only up to `pull_threshold_for_queue`. RocketMQ's consumeTimeout does not exist here.
        Raises MessagesWithdrawn as soon as the messages are to be let go of: let it pass.
        """
        if self.withdrawn.wait(seconds):
            raise MessagesWithdrawn(f"the messages of {self.message_queue} were withdrawn from their listener")

    def reconsume_later(self, message: MessageExt, delay_level: int | None = None) -> None:
        """Mark one message of a batch: it comes again although the listener answers CONSUME_SUCCESS for the others.

        Without a delay level, `delay_level_when_next_consume` holds. In order, all from the first marked one on repeats.
        """
        self.postponed[message.queue_offset] = delay_level


MessageListener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus | None]
"""Called in a thread of the client. To raise or to return None is RECONSUME_LATER, but for what `ConsumeContext.hold` raises."""
