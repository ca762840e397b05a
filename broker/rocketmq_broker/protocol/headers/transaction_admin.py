"""Headers of the operators' requests that this project adds for transactions and their decisions (AdminRequestCode)."""

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.command_header import CommandHeader


class ListPendingTransactionsRequestHeader(CommandHeader):
    """The header of LIST_PENDING_TRANSACTIONS, which lists matching transactions, oldest first."""

    topic: str | None = None
    producer_group: str | None = None
    older_than_ms: Int64 = 0
    """The minimum age of the listed transactions in milliseconds."""
    after: Int64 = -1
    """The half offset at which the previous page ended. The answer lists only transactions with greater half offsets."""
    max_count: Int32 = 100


class ShowTransactionRequestHeader(CommandHeader):
    """The header of SHOW_TRANSACTION.

    The transaction is given by its id, by a key, or by the commit log offset of the half message.
    """

    transaction_id: str | None = None
    key: str | None = None
    half_offset: Int64 | None = None


class DecideTransactionRequestHeader(CommandHeader, kw_only=True):
    """The header of DECIDE_TRANSACTION, which contains an operator's decision and its reason.

    The transaction is given by its id or by its half offset.
    """

    transaction_id: str | None = None
    half_offset: Int64 | None = None
    commit: bool
    """True to commit, False to roll back."""
    reason: str


class ListDecidedTransactionsRequestHeader(CommandHeader):
    """The header of LIST_DECIDED_TRANSACTIONS, which lists decisions that operators made with a reason, latest first."""

    before_ms: Int64 = FOREVER_MS
    """The latest time of the listed decisions, in milliseconds since the epoch."""
    max_count: Int32 = 50
