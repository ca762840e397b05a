"""The result of a send (RocketMQ's SendResult and TransactionSendResult)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rocketmq_broker.message import MessageQueue


class SendStatus(IntEnum):
    """How safe the message is (RocketMQ's SendStatus). All but SEND_OK mean: stored, but not as safely as asked for."""

    SEND_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class LocalTransactionState(IntEnum):
    """What the producer says of its local transaction (RocketMQ's LocalTransactionState)."""

    COMMIT_MESSAGE = 0
    ROLLBACK_MESSAGE = 1
    UNKNOWN = 2
    """Not known yet: the broker will check back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Where the broker stored a message."""

    send_status: SendStatus
    message_id: str
    """The id the client gave the message (UNIQ_KEY); of a batch, all ids with commas between."""
    offset_message_id: str
    """The id that says where the broker stored it; empty for a one-way send."""
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult(SendResult):
    """Where the half message is, and what was decided.

    The decision travels one-way: the broker has been told, and nobody knows whether it heard. If it did not, it checks back.
    """

    local_transaction_state: LocalTransactionState
