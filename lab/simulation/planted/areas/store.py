"""Bugs planted in the broker's store: its syncs, and its recovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE
from rocketmq_broker.store.recovery.queue_recovery import _backwards
from rocketmq_broker.transaction.messages.offsets import TransactionOffsets

_COMMITS: Final = "rocketmq_broker.server.durability.group_commit:GroupCommit"


def _answer_before_the_flush(patches: Patches) -> None:
    write = patches.original(f"{_COMMITS}._write")

    def _write(self: Any) -> None:
        write(self)
        if self._is_sync:
            self._completion.begin(self._store.written_position)

    patches.replace(f"{_COMMITS}._write", _write)


def _count_later_writes_as_flushed(patches: Patches) -> None:
    on_answer = patches.original(f"{_COMMITS}._on_answer")

    def _on_answer(self: Any, error: int) -> None:
        if self._flushing_to is not None:
            self._flushing_to = self._store.written_position
        on_answer(self, error)

    patches.replace(f"{_COMMITS}._on_answer", _on_answer)


def _cut_queues_one_short(patches: Patches) -> None:
    def _count_beyond(queue: Any, commit_log_end: int) -> int:
        count = 0
        for unit in _backwards(queue):
            if unit.size == BLANK_SIZE or unit.commit_log_offset + unit.size < commit_log_end:
                break
            count += 1
        return count

    patches.replace("rocketmq_broker.store.recovery.queue_recovery:_count_beyond", _count_beyond)


def _leave_the_name_unsynced(patches: Patches) -> None:
    def create_file(files: Any, path: Path, size: int) -> None:
        file = files.open(path, create=True)
        try:
            files.truncate(file, size)
            files.sync(file)
        finally:
            files.close(file)

    patches.replace("rocketmq_broker.store.files:create_file", create_file)


def _note_one_half_message_too_many(patches: Patches) -> None:
    def advance_offsets(self: Any) -> TransactionOffsets:
        oldest = self.oldest()
        half_queue_offset = oldest.stored_queue_offset + 1 if oldest is not None else self._next_queue_offset
        return TransactionOffsets(half_queue_offset, self._op_window.advance(half_queue_offset))

    patches.replace("rocketmq_broker.transaction.pending:PendingTransactions.advance_offsets", advance_offsets)


def _look_for_no_evidence(patches: Patches) -> None:
    def _ended_without_op(store: Any, bridge: Any, undecided: Any) -> Any:
        return {}

    patches.replace("rocketmq_broker.server.transactions.transaction_recovery:_ended_without_op", _ended_without_op)


PLANTED: Final = (
    Planted(
        "answered-before-flush",
        PlantedArea.STORE,
        "With SYNC_FLUSH, messages are shown and answered once they are written, before they are flushed.",
        "power failure",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _answer_before_the_flush,
    ),
    Planted(
        "flush-counts-later-writes",
        PlantedArea.STORE,
        "A flush that ends counts also what was written while it ran.",
        "power failure while several requests come at once",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _count_later_writes_as_flushed,
    ),
    Planted(
        "queue-cut-one-short",
        PlantedArea.STORE,
        "Recovery drops the consume queue unit of the last message of the commit log, which ends exactly at the log's end.",
        "a broker that is killed, or loses its power",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _cut_queues_one_short,
    ),
    Planted(
        "segment-name-unsynced",
        PlantedArea.STORE,
        "A new commit log file is synced, and the directory that holds its name is not.",
        "power failure",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _leave_the_name_unsynced,
    ),
    Planted(
        "half-offset-one-too-far",
        PlantedArea.STORE,
        "The saved offset of the half queue points after the oldest pending half message, not at it.",
        "a broker that restarts while a transaction is pending",
        Promise.ORDER_HAS_CREDIT,
        _note_one_half_message_too_many,
    ),
    Planted(
        "no-evidence-sought",
        PlantedArea.STORE,
        "Recovery takes a half message without an op message for undecided, and does not look for its committed message.",
        "a broker that ends, or loses power, between the two records of a COMMIT",
        Promise.ONE_OUTCOME,
        _look_for_no_evidence,
    ),
)
