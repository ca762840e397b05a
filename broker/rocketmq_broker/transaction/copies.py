"""Recognizes copies of half messages, which are several half messages of one transaction.

- RocketMQ rewrites a pending half message at each check, and counts the checks in TRANSACTION_CHECK_TIMES. The
  broker may stop before it writes the op message for the previous copy.
- This broker rewrites a half message only to put it back at the end of the half queue (states.py). The copy refers
  to the first half message in TRAN_PREPARED_QUEUE_OFFSET and preparedTransactionOffset. The op message for the
  previous copy does not decide the transaction.
- A resumed message has TRANSACTION_CHECK_TIMES=0. It starts a new transaction, although its identity is the same in
  RocketMQ.

All copies of a transaction have the same identity. A producer cannot forge the identity, because it contains the
born host, which the broker sets. The newest copy is the valid one. A decision about any copy applies to the
transaction. RocketMQ's op message for an older copy also applies to the transaction.
"""

from collections.abc import Iterable, Mapping

from rocketmq_broker.message import properties as props
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets

Origin = tuple[str | None, str, int, bytes]
"""The values that identify a producer's message: transaction id, producer group, born timestamp and born host.

The timestamp differs if a producer sends a message twice.
"""

Identity = tuple[str | None, str, int, bytes, str | None]
"""The values of `Origin`, and the commit log offset of the message that was resumed, or None."""


def origin_of(half: HalfMessage) -> Origin:
    """Returns the values that identify the producer's message from which the half message was made."""
    return half.transaction_id, half.producer_group, half.born_timestamp, half.born_host


def identity_of(half: HalfMessage) -> Identity:
    """Returns the values that are the same in all copies of a half message, and in the committed or discarded message."""
    return (*origin_of(half), half.resumed_from)


def first_offsets(half: HalfMessage) -> RecordOffsets | None:
    """Returns the offsets of the first half message if this broker put the half message back, otherwise None."""
    queue_offset = _first_queue_offset(half) if half.prepared_transaction_offset else None
    if queue_offset is None:
        return None
    return RecordOffsets(max(half.prepared_transaction_offset, 0), queue_offset)


def is_copy(half: HalfMessage) -> bool:
    """Returns True if the half message is a copy that was written at a check or when it was put back.

    The transaction of a copy began before the copy's store timestamp.
    """
    return bool(half.check_times) or _first_queue_offset(half) is not None


def _first_queue_offset(half: HalfMessage) -> int | None:
    """Returns TRAN_PREPARED_QUEUE_OFFSET, or None. RocketMQ also sets it in copies that it writes within the immunity time."""
    return half.number(props.TRANSACTION_PREPARED_QUEUE_OFFSET)


class Copy:
    """The data that recovery keeps for each half message while reading the half queue."""

    __slots__ = ("begins", "first", "is_closed", "offsets")

    def __init__(self, half: HalfMessage, *, is_closed: bool) -> None:
        """Creates the data of a half message. `is_closed` is True if an op message refers to the half message."""
        self.offsets = RecordOffsets(half.commit_log_offset, half.queue_offset)
        self.first = first_offsets(half)
        """The offsets of the first half message if this broker put the copy back; otherwise None."""
        self.begins = not is_copy(half) and not half.prepared_transaction_offset
        """True if the half message starts a transaction. False if it is a copy of an earlier half message."""
        self.is_closed = is_closed


def by_transaction(copies: Iterable[Copy]) -> list[list[Copy]]:
    """Groups copies by transaction. The copies must have the same identity and be in the order of the half queue."""
    transactions: list[list[Copy]] = []
    for copy in copies:
        if copy.begins or not transactions:
            transactions.append([])
        transactions[-1].append(copy)
    return transactions


def are_decided(copies: list[Copy]) -> bool:
    """Returns True if an op message refers to the copy that was put back last, or to a later copy.

    If no copy was put back, an op message for any copy decides the transaction.
    """
    last_put_back = max((index for index, copy in enumerate(copies) if copy.first is not None), default=0)
    return any(copy.is_closed for copy in copies[last_put_back:])


class Copies:
    """Finds the pending transaction of a copy that a broker wrote before its last start."""

    def __init__(self, pending: Mapping[int, PendingTransaction]) -> None:
        """Creates an empty table. `pending` maps the first half message's commit log offset to each pending transaction."""
        self._pending = pending
        self._by_offset: dict[int, tuple[PendingTransaction, int]] = {}
        self._by_identity: dict[Identity, PendingTransaction] = {}

    def add(self, transaction: PendingTransaction, copy: RecordOffsets) -> None:
        """Adds a copy of the transaction's half message that recovery has read."""
        self._by_offset[copy.commit_log_offset] = (transaction, copy.queue_offset)

    def add_unread(self, transaction: PendingTransaction, identity: Identity) -> None:
        """Records that the transaction also has older copies, which recovery has not read."""
        self._by_identity[identity] = transaction

    def find(self, commit_log_offset: int) -> tuple[PendingTransaction, int] | None:
        """Returns the pending transaction to which the copy at this offset belongs, and the copy's queue offset, or None."""
        found = self._by_offset.get(commit_log_offset)
        return found if found is not None and self._is_pending(found[0]) else None

    def find_unread(self, half: HalfMessage) -> PendingTransaction | None:
        """Returns the pending transaction of a copy that recovery has not read, or None."""
        found = self._by_identity.get(identity_of(half))
        return found if found is not None and self._is_pending(found) else None

    def _is_pending(self, transaction: PendingTransaction) -> bool:
        return self._pending.get(transaction.commit_log_offset) is transaction
