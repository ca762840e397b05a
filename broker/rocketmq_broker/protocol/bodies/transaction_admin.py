"""Bodies about transactions, for operators: answers to this project's own requests (AdminRequestCode)."""

from __future__ import annotations

from rocketmq_broker.protocol.body import Body, BodyPart


class CheckBackInfo(BodyPart):
    """One recorded check-back."""

    asked_ms: int
    producer: str
    """The address of the producer."""
    answer: str | None = None
    """`COMMIT`, `ROLLBACK` or `UNKNOWN`; None until the producer answers."""
    answered_ms: int | None = None
    failure: str | None = None
    """The reason for UNKNOWN that the producer's client sent, or None."""


class TransactionInfo(BodyPart):
    """One transaction, pending or decided. Values that are unknown or do not apply are None."""

    state: str
    """`pending`, `committed`, `rolled back`, `discarded` or `lost`."""
    half_offset: int
    """The commit log offset of the half message, which identifies the transaction."""
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
    """The reason why the half message cannot be read."""

    check_backs: list[CheckBackInfo] = []
    """The recorded check-backs since the broker's start, oldest first. Set only in answers to SHOW_TRANSACTION."""

    # Fields of a pending transaction.
    age_ms: int | None = None
    check_max: int | None = None
    """The number of checks after which the message is discarded."""
    next_check_in_ms: int | None = None
    """The time in milliseconds until the next check, or until the message is discarded."""
    is_producer_online: bool | None = None
    answer_owed_ms: int | None = None
    """The time in milliseconds since an online producer got a check that it has not answered.

    Until the producer answers or the check times out, it gets no further check and the message is not discarded.
    """

    # Fields of a decided transaction.
    decided_ms: int | None = None
    reason: str | None = None
    message_id: str | None = None
    """The offset message id of the committed message, or of the message in TRANS_CHECK_MAX_TIME_TOPIC."""


class TransactionList(Body):
    """A page of transactions."""

    transactions: list[TransactionInfo] = []
    total: int = 0
    """The number of matching transactions on all pages."""
    next_after: int | None = None
    """The value that requests the next page, or None on the last page."""
