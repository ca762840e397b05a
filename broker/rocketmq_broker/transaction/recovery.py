"""Recovers the table of pending transactions from the half queue and the op queue of any broker.

A half message is decided if an op message refers to it. There are three exceptions. A transaction may have several
half messages (copies.py). A broker may have stored a committed or discarded message and stopped before it stored
the op message (evidence.py). A power failure may have damaged the record before an op message. That record may have
been the message of a COMMIT, so the op message is "doubted": it does not decide its transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.copies import Copy, Identity, are_decided, by_transaction, identity_of, is_copy
from rocketmq_broker.transaction.errors import NotAHalfMessage, NotAnOpMessage
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HalfMessage, read_any_message, read_half_message
from rocketmq_broker.transaction.messages.offsets import OpWindow
from rocketmq_broker.transaction.messages.op_message import decided_offsets
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets


@dataclass(slots=True)
class RecoveredTransaction:
    """A transaction that is undecided according to the half queue and the op queue."""

    transaction: PendingTransaction
    identity: Identity
    copies: list[RecordOffsets]
    """The offsets of the transaction's other half messages."""
    has_unread_copies: bool
    """True if RocketMQ wrote older copies that recovery has not read. In that case, the first half message is unknown."""

    @property
    def transaction_id(self) -> str | None:
        """Returns the transaction id, or None. The index finds the committed message by this id."""
        return self.identity[0]

    @property
    def commit_log_offsets(self) -> list[int]:
        """Returns the commit log offsets of the transaction's known half messages."""
        return [self.transaction.commit_log_offset, *(copy.commit_log_offset for copy in self.copies)]

    @property
    def begins(self) -> int:
        """Returns the lowest commit log offset of the half messages. Any committed or discarded message has a higher offset."""
        return min(self.commit_log_offsets) if self.copies else self.transaction.commit_log_offset

    @property
    def outcome_topics(self) -> tuple[bytes, bytes]:
        """Returns the topic of the transaction's committed message, and the topic of discarded messages."""
        return self.transaction.topic, DISCARD_TOPIC


@dataclass(slots=True)
class RecoveredTable:
    """The result of reading the half queue and the op queue."""

    undecided: list[RecoveredTransaction]
    """The undecided transactions, in the order of the half queue."""
    superseded: list[int]
    """The queue offsets of half messages that need an op message, because a newer copy exists or the transaction is decided."""
    op_window: OpWindow
    doubted: set[int]
    """The queue offsets of half messages to which a doubted op message refers (see the module's description)."""
    damaged: list[str]
    """The errors of records that could not be read."""


class TransactionRecovery:
    """Reads the op queue and then the half queue, each from its consumer offset to its end. Call `finish` at the end."""

    def __init__(
        self,
        policy: CheckPolicy,
        now_ms: int,
        *,
        op_offset: int = 0,
        check_counts: Mapping[int, int] | None = None,
        is_doubted: Callable[[int], bool] = lambda commit_log_offset: False,
    ) -> None:
        """Creates a recovery. `op_offset` is the consumer offset of the op queue.

        `check_counts` contains the saved check counts, keyed by commit log offset.

        `is_doubted` returns True if the record before the op message at a commit log offset is damaged. Such an op message
        does not decide a transaction.
        """
        self._policy = policy
        self._now_ms = now_ms
        self._check_counts = check_counts or {}
        self._is_doubted = is_doubted
        self._closed: set[int] = set()
        self._doubted: set[int] = set()
        self._copies: dict[Identity, list[Copy]] = {}
        self._transactions: dict[int, PendingTransaction] = {}
        self._damaged: list[str] = []
        self._op_window = OpWindow(op_offset)

    def add_op(self, data: bytes) -> None:
        """Reads the next record of the op queue."""
        try:
            op = read_any_message(data)
            offsets = decided_offsets(op)
        except (CorruptRecord, NotAnOpMessage) as error:
            self._damaged.append(str(error))
            return
        (self._doubted if self._is_doubted(op.commit_log_offset) else self._closed).update(offsets)
        self._op_window.add(op.queue_offset, max(offsets))

    def add_half(self, data: bytes) -> None:
        """Reads the next record of the half queue."""
        try:
            half = read_half_message(data)
            is_closed = half.queue_offset in self._closed
            if not is_closed:
                self._transactions[half.queue_offset] = self._transaction(half)
        except (CorruptRecord, NotAHalfMessage) as error:
            self._damaged.append(str(error))
            return
        identity: Identity = identity_of(half) if half.transaction_id else (None, "", half.queue_offset, b"", None)
        self._copies.setdefault(identity, []).append(Copy(half, is_closed=is_closed))

    def finish(self) -> RecoveredTable:
        """Returns the undecided transactions, and the half messages that need an op message."""
        undecided: list[RecoveredTransaction] = []
        superseded: list[int] = []
        for identity, alike in self._copies.items():
            for copies in by_transaction(alike):
                if not are_decided(copies):
                    undecided.append(self._undecided(identity, copies))
                    copies = copies[:-1]
                superseded.extend(copy.offsets.queue_offset for copy in copies if not copy.is_closed)
        undecided.sort(key=lambda recovered: recovered.transaction.stored_queue_offset)
        return RecoveredTable(undecided, sorted(superseded), self._op_window, self._doubted, self._damaged)

    def _transaction(self, half: HalfMessage) -> PendingTransaction:
        topic, queue_id = half.destination()
        begun_ms = min(half.born_timestamp, half.store_timestamp) if is_copy(half) else half.store_timestamp
        begun_ms = min(begun_ms, self._now_ms)  # The system clock may have been set back.
        return PendingTransaction(
            commit_log_offset=half.commit_log_offset,
            queue_offset=half.queue_offset,
            stored_at=half.commit_log_offset,
            stored_queue_offset=half.queue_offset,
            producer_group=half.producer_group,
            topic=topic,
            queue_id=queue_id,
            tags_code=half.tags_code(),
            begun_ms=begun_ms,
            due_ms=self._policy.first_check_due(begun_ms, half.properties),
            checks=half.check_times or 0,
        )

    def _undecided(self, identity: Identity, copies: list[Copy]) -> RecoveredTransaction:
        """Returns the transaction of these copies. Its check-backs contain the offsets of its first half message."""
        newest = copies[-1]
        transaction = self._transactions[newest.offsets.queue_offset]
        others = {copy.offsets for copy in copies}
        others.update(copy.first for copy in copies if copy.first is not None)
        if newest.first is not None:
            transaction.commit_log_offset, transaction.queue_offset = newest.first
        others.discard(RecordOffsets(transaction.commit_log_offset, transaction.queue_offset))
        self._reckon_checks(transaction)
        return RecoveredTransaction(transaction, identity, sorted(others), has_unread_copies=not copies[0].begins)

    def _reckon_checks(self, transaction: PendingTransaction) -> None:
        transaction.checks = max(transaction.checks, self._check_counts.get(transaction.commit_log_offset, 0))
        is_too_old = self._now_ms - transaction.begun_ms > self._policy.file_reserved_ms
        if transaction.checks or is_too_old:
            # The last check may have been a moment ago. A transaction that would be discarded for its age without a check waits
            # for one interval, so that its producers can reconnect.
            transaction.due_ms = max(transaction.due_ms, self._now_ms + self._policy.check_interval_ms)
