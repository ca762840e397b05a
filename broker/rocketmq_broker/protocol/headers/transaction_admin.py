"""What operators ask about transactions, and what they decide by hand: requests of our own (AdminRequestCode)."""

from rocketmq_broker.message.java_numbers import Int32, Int64
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.command_header import CommandHeader


class ListPendingTransactionsRequestHeader(CommandHeader):
    """LIST_PENDING_TRANSACTIONS: the oldest first, only those that match."""

    topic: str | None = None
    producer_group: str | None = None
    older_than_ms: Int64 = 0
    """Only those at least this old."""
    after: Int64 = -1
    """Only those whose half offset is greater: where the page before ended."""
    max_count: Int32 = 100


class ShowTransactionRequestHeader(CommandHeader):
    """SHOW_TRANSACTION: the transactions with that id or key, or the one whose half message lies at that commit log offset."""

    transaction_id: str | None = None
    key: str | None = None
    half_offset: Int64 | None = None


class DecideTransactionRequestHeader(CommandHeader, kw_only=True):
    """DECIDE_TRANSACTION: a person decides, by transaction id or half offset, and says why."""

    transaction_id: str | None = None
    half_offset: Int64 | None = None
    commit: bool
    """False rolls back."""
    reason: str


class ListDecidedTransactionsRequestHeader(CommandHeader):
    """LIST_DECIDED_TRANSACTIONS: what was decided with a reason, the latest first."""

    before_ms: Int64 = FOREVER_MS
    """Only what was decided at or before this time, in milliseconds since the epoch."""
    max_count: Int32 = 50
