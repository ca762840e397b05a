"""The result of a send (RocketMQ's SendResult and TransactionSendResult)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rocketmq_broker.message import MessageQueue


class SendStatus(IntEnum):
    """The safety of a stored message (RocketMQ's SendStatus). All but SEND_OK mean: stored, but not as safely as asked for."""

    SEND_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class LocalTransactionState(IntEnum):
    """The producer's decision about its local transaction (RocketMQ's LocalTransactionState)."""

    COMMIT_MESSAGE = 0
    ROLLBACK_MESSAGE = 1
    UNKNOWN = 2
    """Undecided: the broker will check back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The place of a stored message."""

    send_status: SendStatus
    message_id: str
    """The message id (UNIQ_KEY); of a batch, all ids with commas between."""
    offset_message_id: str
    """The offset message id, which names the place in the broker's store; empty for a one-way send."""
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult(SendResult):
    """The place of the half message, and the decision.

    The decision was sent one-way, so its arrival is not confirmed. A broker that did not get it checks back.
    """

    local_transaction_state: LocalTransactionState
