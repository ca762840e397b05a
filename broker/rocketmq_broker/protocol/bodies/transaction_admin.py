"""Transactions as operators see them: the answers to the requests of our own (AdminRequestCode)."""

from __future__ import annotations

from rocketmq_broker.protocol.body import Body, BodyPart


class CheckBackInfo(BodyPart):
    """One check-back that the broker has on record."""

    asked_ms: int
    producer: str
    """The address of the producer that was asked."""
    answer: str | None = None
    """`COMMIT`, `ROLLBACK` or `UNKNOWN`; None without an answer."""
    answered_ms: int | None = None


class TransactionInfo(BodyPart):
    """One transaction, pending or decided. What is not known, or does not apply, is None."""

    state: str
    """`pending`, `committed`, `rolled back`, `discarded` or `lost`."""
    half_offset: int
    """The commit log offset of its half message, by which it can be named."""
    transaction_id: str | None = None
    producer_group: str = ""
    topic: str = ""
    queue_id: int = -1
    keys: list[str] = []
    tags: str | None = None
    body_size: int | None = None
    begun_ms: int = 0
    """When the half message was stored, in milliseconds since the epoch."""
    checks: int | None = None
    """How often a producer was asked."""
    resumed_from: int | None = None
    """The commit log offset of the discarded message that it was made from."""
    problem: str | None = None
    """Why its half message cannot be read."""

    check_backs: list[CheckBackInfo] = []
    """Those on record, the oldest first: the latest of this broker since it started. SHOW_TRANSACTION has them."""

    # While it is pending.
    age_ms: int | None = None
    check_max: int | None = None
    """The number of checks after which the message is discarded."""
    next_check_in_ms: int | None = None
    """Until the next check, or until it is discarded."""
    is_producer_online: bool | None = None
    answer_owed_ms: int | None = None
    """For how long a producer that is online has owed the answer to a check. It is not asked again, nor the message discarded,
    until the answer comes or its time is over."""

    # Once it is decided.
    decided_ms: int | None = None
    reason: str | None = None
    message_id: str | None = None
    """Offset message id of the message that consumers get, or of the one in TRANS_CHECK_MAX_TIME_TOPIC."""


class TransactionList(Body):
    """A page of transactions."""

    transactions: list[TransactionInfo] = []
    total: int = 0
    """How many match, those of other pages included."""
    next_after: int | None = None
    """Where the next page begins, if there is one."""
