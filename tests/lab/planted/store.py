"""Bugs planted in the broker's store: its syncs, and its recovery."""

from pathlib import Path
from typing import Any, Final

from lab.simulation.judges.violation import Promise
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE
from rocketmq_broker.store.recovery.queue_recovery import _backwards
from rocketmq_broker.transaction.messages.offsets import TransactionOffsets
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug

_COMMITS: Final = "rocketmq_broker.server.durability.group_commit:GroupCommit"


@planted_bug(
    needs="power failure",
    breaks=Promise.ACKNOWLEDGED_IS_KEPT,
    noticed_by="tests/component/server/durability/test_group_commit.py::test_with_sync_flush_the_answer_follows_the_flush_and_so_does_visibility",
    seed=42,
)
def answered_before_flush(patches: Patches) -> None:
    """With SYNC_FLUSH, messages are shown and answered once they are written, before they are flushed."""
    write = patches.original(f"{_COMMITS}._write")

    def _write(self: Any) -> None:
        write(self)
        if self._is_sync:
            self._completion.begin(self._store.written_position)

    patches.replace(f"{_COMMITS}._write", _write)


@planted_bug(
    needs="power failure while several requests come at once",
    breaks=Promise.ACKNOWLEDGED_IS_KEPT,
    noticed_by="tests/component/server/durability/test_group_commit.py::test_what_comes_during_a_flush_makes_up_the_next",
    seed=290,
)
def flush_counts_later_writes(patches: Patches) -> None:
    """A flush that ends counts also what was written while it ran."""
    on_answer = patches.original(f"{_COMMITS}._on_answer")

    def _on_answer(self: Any, error: int) -> None:
        if self._flushing_to is not None:
            self._flushing_to = self._store.written_position
        on_answer(self, error)

    patches.replace(f"{_COMMITS}._on_answer", _on_answer)


@planted_bug(
    needs="a broker that is killed, or loses its power",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/store/recovery/test_recovery.py::test_a_clean_stop_leaves_nothing_to_do",
    seed=2,
)
def queue_cut_one_short(patches: Patches) -> None:
    """Recovery drops the consume queue unit of the last message of the commit log, which ends exactly at the log's end."""

    def _count_beyond(queue: Any, commit_log_end: int) -> int:
        count = 0
        for unit in _backwards(queue):
            if unit.size == BLANK_SIZE or unit.commit_log_offset + unit.size < commit_log_end:
                break
            count += 1
        return count

    patches.replace("rocketmq_broker.store.recovery.queue_recovery:_count_beyond", _count_beyond)


@planted_bug(
    needs="power failure",
    breaks=Promise.ACKNOWLEDGED_IS_KEPT,
    noticed_by="tests/unit/store/test_crash_points.py::test_a_crash_after_any_operation_loses_nothing_acknowledged",
    seed=16,
)
def segment_name_unsynced(patches: Patches) -> None:
    """A new commit log file is synced, and the directory that holds its name is not."""

    def create_file(files: Any, path: Path, size: int) -> None:
        file = files.open(path, create=True)
        try:
            files.truncate(file, size)
            files.sync(file)
        finally:
            files.close(file)

    patches.replace("rocketmq_broker.store.files:create_file", create_file)


@planted_bug(
    needs="a broker that restarts while a transaction is pending",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/transaction/test_pending.py::test_a_decision_is_taken_back_if_it_did_not_reach_the_disk",
    seed=119,
)
def half_offset_one_too_far(patches: Patches) -> None:
    """The saved offset of the half queue points after the oldest pending half message, not at it."""

    def advance_offsets(self: Any) -> TransactionOffsets:
        oldest = self.oldest()
        half_queue_offset = oldest.stored_queue_offset + 1 if oldest is not None else self._next_queue_offset
        return TransactionOffsets(half_queue_offset, self._op_window.advance(half_queue_offset))

    patches.replace("rocketmq_broker.transaction.pending:PendingTransactions.advance_offsets", advance_offsets)


@planted_bug(
    needs="a broker that ends, or loses power, between the two records of a COMMIT",
    breaks=Promise.LIES_THERE_ONCE,
    noticed_by="tests/unit/server/transactions/test_transactional_messages.py::test_wherever_a_crash_cuts_a_commit_the_check_that_follows_delivers_it_once",
    seed=847,
)
def no_evidence_sought(patches: Patches) -> None:
    """Recovery takes a half message without an op message for undecided, and does not look for its committed message."""

    def _ended_without_op(store: Any, bridge: Any, undecided: Any) -> Any:
        return {}

    patches.replace("rocketmq_broker.server.transactions.transaction_recovery:_ended_without_op", _ended_without_op)
