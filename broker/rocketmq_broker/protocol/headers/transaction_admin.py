"""Headers about transactions and decisions by hand: operators' requests that are not RocketMQ's (AdminRequestCode)."""

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.command_header import CommandHeader


class ListPendingTransactionsRequestHeader(CommandHeader):
    """LIST_PENDING_TRANSACTIONS: the matching ones, the oldest first."""

    topic: str | None = None
    producer_group: str | None = None
    older_than_ms: Int64 = 0
    """The least age of those listed."""
    after: Int64 = -1
    """The half offset at which the previous page ended: those listed have a greater one."""
    max_count: Int32 = 100


class ShowTransactionRequestHeader(CommandHeader):
    """SHOW_TRANSACTION: the transactions with that id or key, or the one whose half message has that commit log offset."""

    transaction_id: str | None = None
    key: str | None = None
    half_offset: Int64 | None = None


class DecideTransactionRequestHeader(CommandHeader, kw_only=True):
    """DECIDE_TRANSACTION: a person's decision, by transaction id or half offset, with its reason."""

    transaction_id: str | None = None
    half_offset: Int64 | None = None
    commit: bool
    """Whether to commit; False rolls back."""
    reason: str


class ListDecidedTransactionsRequestHeader(CommandHeader):
    """LIST_DECIDED_TRANSACTIONS: the decisions with a reason, the latest first."""

    before_ms: Int64 = FOREVER_MS
    """The latest time of a decision listed, in milliseconds since the epoch."""
    max_count: Int32 = 50
