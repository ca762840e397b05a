"""Transactions for operators: the answers to requests that are not RocketMQ's (AdminRequestCode)."""

from __future__ import annotations

from rocketmq_broker.protocol.body import Body, BodyPart


class CheckBackInfo(BodyPart):
    """One recorded check-back."""

    asked_ms: int
    producer: str
    """The address of the producer asked."""
    answer: str | None = None
    """`COMMIT`, `ROLLBACK` or `UNKNOWN`; None without an answer."""
    answered_ms: int | None = None
    failure: str | None = None
    """Why the answer is UNKNOWN, as the producer's client says it; None if it did not say."""


class TransactionInfo(BodyPart):
    """One transaction, pending or decided. Values that are unknown, or do not apply, are None."""

    state: str
    """`pending`, `committed`, `rolled back`, `discarded` or `lost`."""
    half_offset: int
    """The commit log offset of its half message, which identifies it."""
    transaction_id: str | None = None
    producer_group: str = ""
    topic: str = ""
    queue_id: int = -1
    keys: list[str] = []
    tags: str | None = None
    body_size: int | None = None
    begun_ms: int = 0
    """The time at which the half message was stored, in milliseconds since the epoch."""
    checks: int | None = None
    """The number of checks."""
    resumed_from: int | None = None
    """The commit log offset of the discarded message from which it was resumed."""
    problem: str | None = None
    """The reason why its half message cannot be read."""

    check_backs: list[CheckBackInfo] = []
    """The recorded check-backs, the oldest first: the latest of this broker since its start. Only in SHOW_TRANSACTION."""

    # Fields of a pending transaction.
    age_ms: int | None = None
    check_max: int | None = None
    """The number of checks after which the message is discarded."""
    next_check_in_ms: int | None = None
    """Time until the next check, or until the discard."""
    is_producer_online: bool | None = None
    answer_owed_ms: int | None = None
    """Time for which an online producer has owed the answer to a check. It is not asked again, nor the message discarded,
    until the answer comes or its time is over."""

    # Fields of a decided transaction.
    decided_ms: int | None = None
    reason: str | None = None
    message_id: str | None = None
    """Offset message id of the message for consumers, or of the one in TRANS_CHECK_MAX_TIME_TOPIC."""


class TransactionList(Body):
    """A page of transactions."""

    transactions: list[TransactionInfo] = []
    total: int = 0
    """The number of matches on all pages."""
    next_after: int | None = None
    """The start of the next page, if there is one."""
