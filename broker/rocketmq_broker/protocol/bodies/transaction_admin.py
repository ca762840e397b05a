"""Response bodies about transactions, for this project's own operator requests (AdminRequestCode)."""

from rocketmq_broker.protocol.body import Body, BodyPart


class CheckBackInfo(BodyPart):
    """One check-back that the broker has recorded."""

    asked_ms: int
    producer: str
    """The address of the producer."""
    answer: str | None = None
    """The producer's answer: `COMMIT`, `ROLLBACK` or `UNKNOWN`. None until the producer answers."""
    answered_ms: int | None = None
    failure: str | None = None
    """The reason for UNKNOWN that the producer's client sent, or None."""


class TransactionInfo(BodyPart):
    """One transaction, pending or decided. A field is None if its value is unknown or does not apply."""

    state: str
    """The state: `pending`, `committed`, `rolled back`, `discarded` or `lost`."""
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
    """The number of checks of the transaction so far."""
    resumed_from: int | None = None
    """The commit log offset of the discarded message from which an operator resumed the transaction.

    None if it was not resumed.
    """
    problem: str | None = None
    """The reason why the broker cannot read the half message, or None."""

    check_backs: list[CheckBackInfo] = []
    """The recorded check-backs since the broker's start, oldest first. Set only in answers to SHOW_TRANSACTION."""

    # Fields of a pending transaction.
    age_ms: int | None = None
    check_max: int | None = None
    """The number of checks after which the broker discards the half message."""
    next_check_in_ms: int | None = None
    """The time in milliseconds until the next check, or until the broker discards the half message."""
    is_producer_online: bool | None = None
    answer_owed_ms: int | None = None
    """The time in milliseconds since the broker sent a check that an online producer has not answered.

    Until the producer answers or the check times out, the broker sends no further check and does not discard the message.
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
    """The value of `after` in the request for the next page. None on the last page."""
