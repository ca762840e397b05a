"""The table rebuilt from the half queue and the op queue, whichever broker wrote them.

A half message is decided if an op message names it. What else there is to know:

- A committed (or discarded) message whose op message is missing, because the broker died between the two, is decided as well:
  `Evidence` recognises it, and the caller appends the op message (evidence.py).
- RocketMQ writes an undecided half message anew at each check, and dies at times before it has noted that the old one is done.
  Copies share their identity (HalfMessage.identity): the newest counts, decisions about the others mean it, an op message for
  an older one has decided it.
- Our own copies, moved forward, name the first half message in preparedTransactionOffset; the op message for the one before
  decides nothing.
- A resumed message has TRANSACTION_CHECK_TIMES=0. It begins a transaction of its own, though RocketMQ leaves it its identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.message.errors import CorruptRecord
from broker.transaction.check_policy import CheckPolicy
from broker.transaction.errors import NotAHalfMessage, NotAnOpMessage
from broker.transaction.half_message import HalfMessage, read_any_message, read_half_message
from broker.transaction.offsets import OpWindow
from broker.transaction.op_message import decided_offsets
from broker.transaction.pending import PendingTransaction
from broker.transaction.recovered_copies import Identity


class _Copy(NamedTuple):
    """What is kept of a half message while the queue is read."""

    commit_log_offset: int
    queue_offset: int
    first: tuple[int, int] | None
    """Commit log offset and queue offset of the first one, if this is a copy of ours."""
    begins: bool
    """Whether it is no copy of the one before."""
    is_decided: bool


@dataclass(slots=True)
class RecoveredTransaction:
    """One undecided transaction, as far as the two queues tell."""

    transaction: PendingTransaction
    identity: Identity
    aliases: list[tuple[int, int]]
    """Commit log offset and queue offset of its other copies."""
    has_older_copies: bool
    """Whether RocketMQ wrote copies before those that were read: the first one is not known."""

    @property
    def transaction_id(self) -> str | None:
        """The key under which the index finds the committed message, if there is one."""
        return self.identity[0]


@dataclass(slots=True)
class RecoveredTable:
    """What the two queues tell."""

    undecided: list[RecoveredTransaction]
    """In the order of the half queue."""
    superseded: list[int]
    """Queue offsets of half messages that want an op message: their transaction has a newer copy, or is decided."""
    op_window: OpWindow
    damaged: list[str]
    """What could not be read, in words."""


@dataclass(slots=True)
class TransactionRecovery:
    """Takes the op messages first, then the half messages, both from their consumer offset to the end; then `finish`."""

    policy: CheckPolicy
    now_ms: int
    op_offset: int = 0
    """The consumer offset of the op queue."""
    check_counts: Mapping[int, int] = field(default_factory=dict)
    """How often each transaction was checked, by commit log offset, as far as that was noted."""
    _decided: set[int] = field(default_factory=set)
    _runs: dict[Identity, list[_Copy]] = field(default_factory=dict)
    _newest: dict[int, PendingTransaction] = field(default_factory=dict)
    _damaged: list[str] = field(default_factory=list)
    _op_window: OpWindow = field(default_factory=OpWindow)

    def __post_init__(self) -> None:
        self._op_window = OpWindow(self.op_offset)

    def add_op(self, data: bytes) -> None:
        """The next record of the op queue."""
        try:
            op = read_any_message(data)
            offsets = decided_offsets(op)
        except (CorruptRecord, NotAnOpMessage) as error:
            self._damaged.append(str(error))
            return
        self._decided.update(offsets)
        self._op_window.add(op.queue_offset, max(offsets))

    def add_half(self, data: bytes) -> None:
        """The next record of the half queue."""
        try:
            half = read_half_message(data)
            is_decided = half.queue_offset in self._decided
            if not is_decided:
                self._newest[half.queue_offset] = self._transaction(half)
        except (CorruptRecord, NotAHalfMessage) as error:
            self._damaged.append(str(error))
            return
        identity: Identity = half.identity if half.transaction_id else (None, "", half.queue_offset, b"", None)
        self._runs.setdefault(identity, []).append(_copy(half, is_decided))

    def finish(self) -> RecoveredTable:
        """What came of it."""
        undecided: list[RecoveredTransaction] = []
        superseded: list[int] = []
        for identity, copies in self._runs.items():
            for run in _split(copies):
                if not _is_decided(run):
                    undecided.append(self._recovered(identity, run))
                    run = run[:-1]
                superseded.extend(copy.queue_offset for copy in run if not copy.is_decided)
        undecided.sort(key=lambda recovered: recovered.transaction.stored_queue_offset)
        return RecoveredTable(undecided, sorted(superseded), self._op_window, self._damaged)

    def _transaction(self, half: HalfMessage) -> PendingTransaction:
        topic, queue_id = half.destination()
        is_copy = half.check_times or half.first_queue_offset is not None
        begun_ms = min(half.born_timestamp, half.store_timestamp) if is_copy else half.store_timestamp
        begun_ms = min(begun_ms, self.now_ms)  # the clock may have been set back
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
            due_ms=self.policy.first_check_due(begun_ms, half.properties),
            checks=half.check_times or 0,
        )

    def _recovered(self, identity: Identity, run: list[_Copy]) -> RecoveredTransaction:
        transaction = self._newest[run[-1].queue_offset]
        places = {(copy.commit_log_offset, copy.queue_offset) for copy in run}
        places.update(copy.first for copy in run if copy.first is not None)
        first = run[-1].first
        if first is not None:
            transaction.commit_log_offset, transaction.queue_offset = first
        transaction.checks = max(transaction.checks, self.check_counts.get(transaction.commit_log_offset, 0))
        is_too_old = self.now_ms - transaction.begun_ms > self.policy.file_reserved_ms
        if transaction.checks or is_too_old:
            # When it was checked last is not known: it might have been just now. And the producers of one that would be given up
            # unasked have not come back yet.
            transaction.due_ms = max(transaction.due_ms, self.now_ms + self.policy.check_interval_ms)
        places.discard((transaction.commit_log_offset, transaction.queue_offset))
        return RecoveredTransaction(transaction, identity, sorted(places), has_older_copies=not run[0].begins)


def _copy(half: HalfMessage, is_decided: bool) -> _Copy:
    offset, queue_offset = half.first_commit_log_offset, half.first_queue_offset
    return _Copy(
        commit_log_offset=half.commit_log_offset,
        queue_offset=half.queue_offset,
        first=(offset, queue_offset) if offset is not None and queue_offset is not None else None,
        begins=not half.check_times and offset is None and queue_offset is None,
        is_decided=is_decided,
    )


def _split(copies: list[_Copy]) -> list[list[_Copy]]:
    runs: list[list[_Copy]] = []
    for copy in copies:
        if copy.begins or not runs:
            runs.append([])
        runs[-1].append(copy)
    return runs


def _is_decided(run: list[_Copy]) -> bool:
    """Whether the newest copy is, or one before it that did not just make way for a copy of ours."""
    last_moved = max((index for index, copy in enumerate(run) if copy.first is not None), default=0)
    return any(copy.is_decided for copy in run[last_moved:])
