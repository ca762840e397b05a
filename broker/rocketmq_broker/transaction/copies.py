"""Several half messages of one transaction: their writers, and how to tell them from those of other transactions.

- RocketMQ rewrites a pending half message at each check, and counts the checks in TRANSACTION_CHECK_TIMES. It may end before
  it has written the op message for the previous one.
- This broker rewrites one only when it puts it back (states.py). The copy names the first half message in
  TRAN_PREPARED_QUEUE_OFFSET and in preparedTransactionOffset; the op message for the previous one decides nothing.
- A resumed message has TRANSACTION_CHECK_TIMES=0: it begins a new transaction, though RocketMQ keeps its identity.

All copies share their identity, which no producer can forge: the broker itself saw the born host. The newest copy counts.
A decision about another copy is one about the newest, and RocketMQ's op message for an older one has decided it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocketmq_broker.message import properties as props
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets

Origin = tuple[str | None, str, int, bytes]
"""Transaction id, producer group, born timestamp, born host. A producer that sends a message twice changes the timestamp."""

Identity = tuple[str | None, str, int, bytes, str | None]
"""Origin, and the commit log offset of the resumed message if there is one."""


def origin_of(half: HalfMessage) -> Origin:
    """Returns what identifies a producer's message."""
    return half.transaction_id, half.producer_group, half.born_timestamp, half.born_host


def identity_of(half: HalfMessage) -> Identity:
    """Returns what the copies of one half message share, also with the committed or discarded message made from them."""
    return (*origin_of(half), half.resumed_from)


def first_offsets(half: HalfMessage) -> RecordOffsets | None:
    """Returns the offsets of the first half message, if this is a copy that this broker put back."""
    queue_offset = _first_queue_offset(half) if half.prepared_transaction_offset else None
    if queue_offset is None:
        return None
    return RecordOffsets(max(half.prepared_transaction_offset, 0), queue_offset)


def is_copy(half: HalfMessage) -> bool:
    """Returns whether the half message was checked or put back, so that its transaction began before its store timestamp."""
    return bool(half.check_times) or _first_queue_offset(half) is not None


def _first_queue_offset(half: HalfMessage) -> int | None:
    """Returns the property, which RocketMQ also writes into copies within the immunity time."""
    return half.number(props.TRANSACTION_PREPARED_QUEUE_OFFSET)


class Copy:
    """The data of a half message that recovery keeps while it reads the half queue."""

    __slots__ = ("begins", "first", "is_closed", "offsets")

    def __init__(self, half: HalfMessage, *, is_closed: bool) -> None:
        """`is_closed`: whether an op message names it."""
        self.offsets = RecordOffsets(half.commit_log_offset, half.queue_offset)
        self.first = first_offsets(half)
        """The offsets of the first half message, if this broker put the copy back."""
        self.begins = not is_copy(half) and not half.prepared_transaction_offset
        """Whether it begins a transaction: it is not a copy of the previous one."""
        self.is_closed = is_closed


def by_transaction(copies: Iterable[Copy]) -> list[list[Copy]]:
    """Splits copies of one identity, in the order of the half queue, by their transactions."""
    transactions: list[list[Copy]] = []
    for copy in copies:
        if copy.begins or not transactions:
            transactions.append([])
        transactions[-1].append(copy)
    return transactions


def are_decided(copies: list[Copy]) -> bool:
    """Returns whether an op message decided their transaction: it names the newest, or one not replaced by a put-back copy."""
    last_put_back = max((index for index, copy in enumerate(copies) if copy.first is not None), default=0)
    return any(copy.is_closed for copy in copies[last_put_back:])


class Copies:
    """The index from copies that earlier runs of a broker wrote to pending transactions."""

    def __init__(self, pending: Mapping[int, PendingTransaction]) -> None:
        """`pending` are the transactions by the commit log offset of their first half message."""
        self._pending = pending
        self._by_offset: dict[int, tuple[PendingTransaction, int]] = {}
        self._by_identity: dict[Identity, PendingTransaction] = {}

    def add(self, transaction: PendingTransaction, copy: RecordOffsets) -> None:
        """Adds a copy of the transaction's half message that recovery read."""
        self._by_offset[copy.commit_log_offset] = (transaction, copy.queue_offset)

    def add_unread(self, transaction: PendingTransaction, identity: Identity) -> None:
        """Notes that the transaction has copies before those that recovery read."""
        self._by_identity[identity] = transaction

    def find(self, commit_log_offset: int) -> tuple[PendingTransaction, int] | None:
        """Returns the pending transaction whose copy has this offset, and the copy's queue offset."""
        found = self._by_offset.get(commit_log_offset)
        return found if found is not None and self._is_pending(found[0]) else None

    def find_unread(self, half: HalfMessage) -> PendingTransaction | None:
        """Returns the pending transaction of a copy that recovery did not read."""
        found = self._by_identity.get(identity_of(half))
        return found if found is not None and self._is_pending(found) else None

    def _is_pending(self, transaction: PendingTransaction) -> bool:
        return self._pending.get(transaction.commit_log_offset) is transaction
