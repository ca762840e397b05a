"""The result of a send (RocketMQ's SendResult and TransactionSendResult)."""

from dataclasses import dataclass
from enum import IntEnum

from rocketmq_broker.message import MessageQueue


class SendStatus(IntEnum):
    """The durability of a stored message (RocketMQ's SendStatus).

    All values except SEND_OK mean that the message is stored, but less safely than configured.
    """

    SEND_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class LocalTransactionState(IntEnum):
    """The result of a local transaction (RocketMQ's LocalTransactionState)."""

    COMMIT_MESSAGE = 0
    ROLLBACK_MESSAGE = 1
    UNKNOWN = 2
    """The result is not known yet. The broker will send a check-back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The result of a send: the status, ids and position of the stored message."""

    send_status: SendStatus
    message_id: str
    """The message id (UNIQ_KEY). For a batch, all ids, separated by commas."""
    offset_message_id: str
    """The offset message id, which contains the position in the broker's commit log. Empty for a one-way send."""
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult(SendResult):
    """The result of sending the half message, and the local transaction's result.

    The decision was sent one-way, so its arrival is not confirmed. A broker that did not receive the decision sends a check-back.
    """

    local_transaction_state: LocalTransactionState
