"""The table of undecided transactions.

A decision finds its transaction by the half message's commit log offset; the timer finds what is due in a heap, so that
checking costs what is due and not what is stored. Nothing here reads or writes the store: the caller appends the records and
tells the table, then says how far the commit log can no longer lose them (`confirm`), or from where on it did (`take_back`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from broker.transaction.offsets import OpWindow, TransactionOffsets

REMEMBERED_OUTCOMES = 10_000
"""At least so many past outcomes are kept, and at most twice as many, to say what a late decision is late for."""

_HEAP_SLACK = 4096
_BEFORE_ALL_MS = -(1 << 62)
_AFTER_ALL_MS = 1 << 62


class Outcome(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    DISCARDED = "discarded"
    LOST = "lost"
    """Its half message cannot be read any more."""


@dataclass(slots=True, eq=False)
class PendingTransaction:
    """One undecided transaction."""

    commit_log_offset: int
    """Of the half message that decisions refer to: the first one, however often it was moved."""
    queue_offset: int
    """The same one's offset in the half queue, which RocketMQ calls the transaction state table offset."""
    stored_at: int
    """The commit log offset of the copy that lies nearest to the half queue's end; the first one's if none was made."""
    stored_queue_offset: int
    producer_group: str
    topic: bytes
    """Where its message belongs."""
    queue_id: int
    tags_code: int
    begun_ms: int
    due_ms: int
    """When to look at it next."""
    checks: int = 0
    """How often a producer was asked."""


class Place(NamedTuple):
    """Where a record was appended."""

    commit_log_offset: int
    queue_offset: int


class _Kind(Enum):
    ADDED = 0
    SETTLED = 1
    MOVED = 2
    COPY_CLOSED = 3


class _Change(NamedTuple):
    """What a record meant that may still be lost."""

    kind: _Kind
    commit_log_offset: int
    """Of the (last) record that meant it."""
    transaction: PendingTransaction | None
    before: Place | None
    """Of a move: where the copy before lies."""


class PendingTransactions:
    """All undecided transactions of a broker."""

    def __init__(self, *, check_interval_ms: int, next_queue_offset: int = 0, op_window: OpWindow | None = None) -> None:
        """`next_queue_offset` is where the half queue ends, `op_window` what the op queue holds beyond its consumer offset."""
        self._check_interval_ms = check_interval_ms
        self._next_queue_offset = next_queue_offset
        self._op_window = op_window or OpWindow()
        self._pending: dict[int, PendingTransaction] = {}  # in the order of stored_queue_offset
        self._aliases: dict[int, tuple[PendingTransaction, int]] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._older_outcomes: dict[int, Outcome] = {}
        self._due: list[tuple[int, int]] = []
        self._watched_until_ms = _BEFORE_ALL_MS
        self._on_due_sooner: Callable[[], None] = lambda: None
        self._unconfirmed: deque[_Change] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[PendingTransaction]:
        """The transactions, the one that lies furthest back in the half queue first."""
        return iter(self._pending.values())

    @property
    def next_queue_offset(self) -> int:
        """The queue offset that the next half message will have."""
        return self._next_queue_offset

    # What a decision needs.

    def find(self, commit_log_offset: int) -> PendingTransaction | None:
        """The undecided transaction whose half message lies there."""
        return self._pending.get(commit_log_offset)

    def find_alias(self, commit_log_offset: int) -> tuple[PendingTransaction, int] | None:
        """The same by the offset of another copy, with that copy's queue offset. Only broker restarts bring such to light."""
        found = self._aliases.get(commit_log_offset)
        return found if found is not None and found[0].commit_log_offset in self._pending else None

    def outcome(self, commit_log_offset: int) -> Outcome | None:
        """How a transaction ended, if that is not long ago."""
        return self._outcomes.get(commit_log_offset) or self._older_outcomes.get(commit_log_offset)

    # What happens to a transaction.

    def add(self, transaction: PendingTransaction) -> None:
        """A half message was appended."""
        self._pending[transaction.commit_log_offset] = transaction
        self._next_queue_offset = transaction.stored_queue_offset + 1
        self._push_due(transaction)
        self._unconfirmed.append(_Change(_Kind.ADDED, transaction.stored_at, transaction, None))

    def add_alias(self, transaction: PendingTransaction, commit_log_offset: int, queue_offset: int) -> None:
        """Decisions may also refer to the copy at this offset."""
        self._aliases[commit_log_offset] = (transaction, queue_offset)

    def settle(self, transaction: PendingTransaction, outcome: Outcome, op: Place) -> None:
        """The op message that closes it was appended: no later decision counts."""
        offset = transaction.commit_log_offset
        del self._pending[offset]
        self._op_window.add(op.queue_offset, transaction.stored_queue_offset)
        self._outcomes[offset] = outcome
        self._unconfirmed.append(_Change(_Kind.SETTLED, op.commit_log_offset, transaction, None))

    def close_copy(self, queue_offset: int, op: Place) -> None:
        """The op message for a superseded copy was appended."""
        self._op_window.add(op.queue_offset, queue_offset)
        self._unconfirmed.append(_Change(_Kind.COPY_CLOSED, op.commit_log_offset, None, None))

    def move(self, transaction: PendingTransaction, copy: Place, op: Place) -> None:
        """A copy was appended at the half queue's end, and then the op message that closes the one before."""
        self._op_window.add(op.queue_offset, transaction.stored_queue_offset)
        before = Place(transaction.stored_at, transaction.stored_queue_offset)
        self._unconfirmed.append(_Change(_Kind.MOVED, op.commit_log_offset, transaction, before))
        transaction.stored_at, transaction.stored_queue_offset = copy
        self._next_queue_offset = copy.queue_offset + 1
        self._pending[transaction.commit_log_offset] = self._pending.pop(transaction.commit_log_offset)

    def confirm(self, position: int) -> None:
        """What was appended before that commit log offset stays."""
        unconfirmed = self._unconfirmed
        while unconfirmed and unconfirmed[0].commit_log_offset < position:
            unconfirmed.popleft()
        if len(self._outcomes) > REMEMBERED_OUTCOMES:
            self._older_outcomes, self._outcomes = self._outcomes, {}

    def take_back(self, position: int) -> None:
        """What was appended from that commit log offset on is lost: what it meant has not happened."""
        unconfirmed = self._unconfirmed
        is_order_lost = False
        while unconfirmed and unconfirmed[-1].commit_log_offset >= position:
            change = unconfirmed.pop()
            is_order_lost = is_order_lost or change.kind is not _Kind.ADDED
            self._undo(change)
        if is_order_lost:
            in_order = sorted(self._pending.values(), key=lambda transaction: transaction.stored_queue_offset)
            self._pending = {transaction.commit_log_offset: transaction for transaction in in_order}

    def _undo(self, change: _Change) -> None:
        kind, _, transaction, before = change
        if kind is not _Kind.ADDED:
            self._op_window.take_back()
        if transaction is None:
            return
        offset = transaction.commit_log_offset
        if kind is _Kind.SETTLED:
            self._pending[offset] = transaction
            self._outcomes.pop(offset, None)
            self._older_outcomes.pop(offset, None)
            self._push_due(transaction)
            return
        self._next_queue_offset = transaction.stored_queue_offset
        if before is not None:
            transaction.stored_at, transaction.stored_queue_offset = before
        else:
            del self._pending[offset]

    # What the timer needs.

    def next_due_ms(self) -> int | None:
        """When something is due next; at times too early, never too late."""
        return self._due[0][0] if self._due else None

    def watch(self, until_ms: int | None, on_due_sooner: Callable[[], None]) -> None:
        """Calls `on_due_sooner` once when a transaction becomes due before that time; None is later than any time."""
        self._watched_until_ms = until_ms if until_ms is not None else _AFTER_ALL_MS
        self._on_due_sooner = on_due_sooner

    def due(self, now_ms: int, limit: int) -> list[PendingTransaction]:
        """At most `limit` transactions that are due. Each is due again after the check interval, whatever the caller does."""
        taken: list[PendingTransaction] = []
        while self._due and self._due[0][0] <= now_ms and len(taken) < limit:
            due_ms, offset = heappop(self._due)
            transaction = self._pending.get(offset)
            if transaction is not None and transaction.due_ms == due_ms:
                self.reschedule(transaction, now_ms + self._check_interval_ms)
                taken.append(transaction)
        return taken

    def reschedule(self, transaction: PendingTransaction, due_ms: int) -> None:
        """Looks at it then, and not before."""
        transaction.due_ms = due_ms
        self._push_due(transaction)

    def clock_stepped(self, step_ms: int) -> None:
        """The clock is about to leap: what began and what is due is counted by the new one, so that nobody waits more or less."""
        for transaction in self._pending.values():
            transaction.begun_ms += step_ms
            transaction.due_ms += step_ms
        for change in self._unconfirmed:
            if change.kind is _Kind.SETTLED and change.transaction is not None:
                change.transaction.begun_ms += step_ms
                change.transaction.due_ms += step_ms
        self._watched_until_ms += step_ms
        self._drop_stale_due_times()

    # What the next broker needs.

    def oldest(self) -> PendingTransaction | None:
        """The transaction that holds the half queue's consumer offset back."""
        return next(iter(self._pending.values()), None)

    def needed_from(self, begun_after_ms: int) -> int | None:
        """The commit log offset from which on records are needed for transactions begun after a time; None without any."""
        return next((each.stored_at for each in self._pending.values() if each.begun_ms > begun_after_ms), None)

    def consumer_offsets(self) -> TransactionOffsets:
        """How far CID_RMQ_SYS_TRANS has come, once all that is appended by now is on disk. Nobody may be told before."""
        oldest = self.oldest()
        half_offset = oldest.stored_queue_offset if oldest is not None else self._next_queue_offset
        return TransactionOffsets(half_offset, self._op_window.advance(half_offset))

    def _push_due(self, transaction: PendingTransaction) -> None:
        heappush(self._due, (transaction.due_ms, transaction.commit_log_offset))
        if transaction.due_ms < self._watched_until_ms:
            self._watched_until_ms = _BEFORE_ALL_MS
            self._on_due_sooner()
        if len(self._due) > 2 * len(self._pending) + _HEAP_SLACK:
            self._drop_stale_due_times()

    def _drop_stale_due_times(self) -> None:
        self._due = [(transaction.due_ms, offset) for offset, transaction in self._pending.items()]
        heapify(self._due)
