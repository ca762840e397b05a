"""The table of pending transactions. `states.py` describes their states.

The table does not access the store. The caller appends the records of a transition and then updates the table. Later the caller
calls `confirm` with the commit log offset before which all records are on disk, or `take_back` with the offset from which all
records were lost.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Final, Protocol

from rocketmq_broker.transaction.copies import Copies
from rocketmq_broker.transaction.due_times import DueTimes
from rocketmq_broker.transaction.messages.offsets import OpWindow, TransactionOffsets
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets
from rocketmq_broker.transaction.states import State

REMEMBERED: Final = 10_000
"""The minimum number of ended transactions whose state is kept. The maximum is twice this number."""


class Offsets(Protocol):
    """The offsets of an appended record: RecordOffsets, or the result of the store's `append`."""

    @property
    def commit_log_offset(self) -> int:
        """Returns the offset in the commit log."""

    @property
    def queue_offset(self) -> int:
        """Returns the offset in the record's queue."""


class _Kind(Enum):
    ADDED = 0
    ENDED = 1
    PUT_BACK = 2
    COPY_CLOSED = 3


class _Change:
    """A change that must be undone if its record is not written to disk."""

    __slots__ = ("commit_log_offset", "copy_before", "kind", "transaction")

    def __init__(
        self, kind: _Kind, commit_log_offset: int, transaction: PendingTransaction | None, copy_before: RecordOffsets | None
    ) -> None:
        """`commit_log_offset` is the offset of the change's last record.

        `copy_before` contains the offsets of the transaction's newest half message before a copy was put back.
        """
        self.kind = kind
        self.commit_log_offset = commit_log_offset
        self.transaction = transaction
        self.copy_before = copy_before


class PendingTransactions:
    """All pending transactions of a broker, in the order of the half queue."""

    def __init__(self, *, check_interval_ms: int, next_queue_offset: int = 0, op_window: OpWindow | None = None) -> None:
        """Creates an empty table. `next_queue_offset` is the queue offset of the next half message.

        `op_window` contains the op messages at and after the op queue's consumer offset.
        """
        self._pending: dict[int, PendingTransaction] = {}  # in the order of stored_queue_offset
        self._next_queue_offset = next_queue_offset
        self._op_window = op_window or OpWindow()
        self._unconfirmed: deque[_Change] = deque()
        self.due_times = DueTimes(self._pending, check_interval_ms)
        self.ended = EndedTransactions()
        self.copies = Copies(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[PendingTransaction]:
        return iter(self._pending.values())

    def find(self, commit_log_offset: int) -> PendingTransaction | None:
        """Returns the pending transaction whose first half message has this commit log offset, or None."""
        return self._pending.get(commit_log_offset)

    # Transitions

    def add(self, transaction: PendingTransaction) -> None:
        """Adds a pending transaction. Call it after its half message was appended."""
        self._pending[transaction.commit_log_offset] = transaction
        self._next_queue_offset = transaction.stored_queue_offset + 1
        self.due_times.add(transaction)
        self._unconfirmed.append(_Change(_Kind.ADDED, transaction.stored_at, transaction, None))

    def end(self, transaction: PendingTransaction, state: State, op: Offsets) -> None:
        """Removes a transaction. Call it after the op message that closes its half message was appended."""
        offset = transaction.commit_log_offset
        del self._pending[offset]
        self._op_window.add(op.queue_offset, transaction.stored_queue_offset)
        self.ended.remember(offset, state)
        self._unconfirmed.append(_Change(_Kind.ENDED, op.commit_log_offset, transaction, None))

    def put_back(self, transaction: PendingTransaction, copy: Offsets, op: Offsets) -> None:
        """Records that a copy was appended to the half queue, and an op message that closes the previous copy."""
        self._op_window.add(op.queue_offset, transaction.stored_queue_offset)
        copy_before = RecordOffsets(transaction.stored_at, transaction.stored_queue_offset)
        self._unconfirmed.append(_Change(_Kind.PUT_BACK, op.commit_log_offset, transaction, copy_before))
        transaction.stored_at, transaction.stored_queue_offset = copy.commit_log_offset, copy.queue_offset
        self._next_queue_offset = copy.queue_offset + 1
        self._pending[transaction.commit_log_offset] = self._pending.pop(transaction.commit_log_offset)

    def close_copy(self, queue_offset: int, op: Offsets) -> None:
        """Records that an op message was appended for a half message that has a newer copy."""
        self._op_window.add(op.queue_offset, queue_offset)
        self._unconfirmed.append(_Change(_Kind.COPY_CLOSED, op.commit_log_offset, None, None))

    # Confirmation and loss of appended records

    def confirm(self, position: int) -> None:
        """Records that all records before `position`, a commit log offset, are on disk."""
        unconfirmed = self._unconfirmed
        while unconfirmed and unconfirmed[0].commit_log_offset < position:
            unconfirmed.popleft()
        self.ended.forget_oldest()

    def take_back(self, position: int) -> None:
        """Undoes the transitions whose records were lost. All records at and after `position`, a commit log offset, were lost."""
        unconfirmed = self._unconfirmed
        is_order_lost = False
        while unconfirmed and unconfirmed[-1].commit_log_offset >= position:
            change = unconfirmed.pop()
            is_order_lost = is_order_lost or change.kind is not _Kind.ADDED
            self._undo(change)
        if is_order_lost:
            in_order = sorted(self._pending.values(), key=lambda transaction: transaction.stored_queue_offset)
            self._pending.clear()
            self._pending.update((transaction.commit_log_offset, transaction) for transaction in in_order)

    def _undo(self, change: _Change) -> None:
        kind, transaction, copy_before = change.kind, change.transaction, change.copy_before
        if kind is not _Kind.ADDED:
            self._op_window.take_back()
        if transaction is None:
            return
        offset = transaction.commit_log_offset
        if kind is _Kind.ENDED:
            self._pending[offset] = transaction
            self.ended.forget(offset)
            self.due_times.add(transaction)
            return
        self._next_queue_offset = transaction.stored_queue_offset
        if copy_before is not None:
            transaction.stored_at, transaction.stored_queue_offset = copy_before
        else:
            del self._pending[offset]

    # Data for the next start of the broker

    def oldest(self) -> PendingTransaction | None:
        """Returns the oldest pending transaction, or None. Its newest half message is at the half queue's consumer offset."""
        return next(iter(self._pending.values()), None)

    def behind_newest(self, transaction: PendingTransaction) -> int:
        """Returns the number of half messages from the transaction's newest half message to the end of the half queue."""
        return self._next_queue_offset - transaction.stored_queue_offset

    def needed_from(self, begun_after_ms: int) -> int | None:
        """Returns the first commit log offset required by transactions that began after `begun_after_ms`, or None."""
        return next((each.stored_at for each in self._pending.values() if each.begun_ms > begun_after_ms), None)

    def advance_offsets(self) -> TransactionOffsets:
        """Returns the consumer offsets of CID_RMQ_SYS_TRANS. The caller may store them once all appended records are on disk."""
        oldest = self.oldest()
        half_queue_offset = oldest.stored_queue_offset if oldest is not None else self._next_queue_offset
        return TransactionOffsets(half_queue_offset, self._op_window.advance(half_queue_offset))

    def clock_stepped(self, step_ms: int) -> None:
        """Shifts all times by a step of the system clock, so that ages and waiting times do not change."""
        undone = (change.transaction for change in self._unconfirmed if change.kind is _Kind.ENDED)
        for transaction in (*self._pending.values(), *undone):
            if transaction is not None:
                transaction.begun_ms += step_ms
                transaction.due_ms += step_ms
        self.due_times.clock_stepped(step_ms)


class EndedTransactions:
    """The states of the most recently ended transactions, keyed by the commit log offset of their first half message.

    The states are used to explain why a late decision is refused.
    """

    def __init__(self) -> None:
        self._newer: dict[int, State] = {}
        self._older: dict[int, State] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def remember(self, commit_log_offset: int, state: State) -> None:
        """Records the state in which a transaction ended."""
        self._newer[commit_log_offset] = state

    def forget(self, commit_log_offset: int) -> None:
        """Removes a transaction that is pending again because its end was undone."""
        self._newer.pop(commit_log_offset, None)
        self._older.pop(commit_log_offset, None)

    def forget_oldest(self) -> None:
        """Drops the older half of the entries if the newer half is full. This limits the memory."""
        if len(self._newer) > REMEMBERED:
            self._older, self._newer = self._newer, {}

    def state_of(self, commit_log_offset: int) -> State | None:
        """Returns the state of a recently ended transaction, or None."""
        return self._newer.get(commit_log_offset) or self._older.get(commit_log_offset)
