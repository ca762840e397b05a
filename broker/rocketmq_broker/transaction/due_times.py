"""A heap of the due times of pending transactions. It finds due transactions without scanning all pending transactions."""

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from rocketmq_broker.transaction.pending_transaction import PendingTransaction

_MAX_STALE: Final = 4096
_BEFORE_ALL_MS: Final = -(1 << 62)
_AFTER_ALL_MS: Final = 1 << 62


class DueTimes:
    """The due times of the pending transactions. The heap may contain outdated times, which are skipped."""

    def __init__(self, pending: Mapping[int, PendingTransaction], check_interval_ms: int) -> None:
        """Creates an empty heap. `pending` maps commit log offsets to transactions. The caller may change it at any time."""
        self._pending = pending
        self._check_interval_ms = check_interval_ms
        self._heap: list[tuple[int, int]] = []
        self._watched_until_ms = _BEFORE_ALL_MS
        self._on_due_sooner: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """Returns the number of times in the heap, including outdated ones."""
        return len(self._heap)

    def next_ms(self) -> int | None:
        """Returns the time in milliseconds of the next due transaction, or an earlier time. Returns None if none is pending."""
        return self._heap[0][0] if self._heap else None

    def watch(self, until_ms: int | None, on_due_sooner: Callable[[], None]) -> None:
        """Calls `on_due_sooner` once when a transaction is added that is due before `until_ms`. None means no limit."""
        self._watched_until_ms = until_ms if until_ms is not None else _AFTER_ALL_MS
        self._on_due_sooner = on_due_sooner

    def add(self, transaction: PendingTransaction) -> None:
        """Adds the due time of a pending transaction. Call it again when the due time changes."""
        heappush(self._heap, (transaction.due_ms, transaction.commit_log_offset))
        if transaction.due_ms < self._watched_until_ms:
            self._watched_until_ms = _BEFORE_ALL_MS
            self._on_due_sooner()
        if len(self._heap) > 2 * len(self._pending) + _MAX_STALE:
            self._drop_stale()

    def take_due(self, now_ms: int, limit: int) -> list[PendingTransaction]:
        """Returns at most `limit` transactions that are due, and postpones the due time of each by the check interval."""
        taken: list[PendingTransaction] = []
        while self._heap and self._heap[0][0] <= now_ms and len(taken) < limit:
            due_ms, offset = heappop(self._heap)
            transaction = self._pending.get(offset)
            if transaction is not None and transaction.due_ms == due_ms:
                self.reschedule(transaction, now_ms + self._check_interval_ms)
                taken.append(transaction)
        return taken

    def reschedule(self, transaction: PendingTransaction, due_ms: int) -> None:
        """Sets the transaction's due time, in milliseconds."""
        transaction.due_ms = due_ms
        self.add(transaction)

    def clock_stepped(self, step_ms: int) -> None:
        """Rebuilds the heap after a step of the system clock. The due times of the transactions must already be adjusted."""
        self._watched_until_ms += step_ms
        self._drop_stale()

    def _drop_stale(self) -> None:
        self._heap = [(transaction.due_ms, offset) for offset, transaction in self._pending.items()]
        heapify(self._heap)
