"""Planted bugs that have an effect only if two faults occur together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lab.simulation.judges.violation import Promise
from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.message import MessageQueue, topics
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug


@planted_bug(
    needs="the broker's process is killed before a flush, and later the power fails",
    breaks=Promise.ACKNOWLEDGED_IS_KEPT,
    noticed_by="tests/unit/store/test_crash_points.py::test_what_a_start_after_a_kill_has_shown_survives_a_power_failure",
    seed=None,
)
def recovered_log_unsynced(patches: Patches) -> None:
    """Recovery shows what it found in the commit log without a sync, unless it had to cut a torn tail."""
    target = "rocketmq_broker.store.recovery.recovery:_Recovery._cut_tail"
    cut = patches.original(target)

    def _cut_tail(self: Any, scan: Any, progress: Any) -> None:
        if scan.has_torn_tail:
            cut(self, scan, progress)

    patches.replace(target, _cut_tail)


@planted_bug(
    needs="a sync fails, and later the power fails",
    breaks=Promise.BOOKS_AGREE,
    noticed_by="tests/component/server/durability/test_group_commit.py::test_a_flush_that_fails_takes_back_what_it_was_for",
    seed=42,
)
def failed_sync_repeated(patches: Patches) -> None:
    """A sync that failed is repeated, and its success counts, though the system has dropped the pages."""
    target = "rocketmq_broker.server.durability.group_commit:GroupCommit._on_answer"
    on_answer = patches.original(target)

    def _on_answer(self: Any, error: int) -> None:
        if error and self._is_sync and self._flushing_to is not None:
            self._flushing_to = None
            self._flush()
        else:
            on_answer(self, error)

    patches.replace(target, _on_answer)


@planted_bug(
    needs="the disk takes more than 5 s for a sync, and the power fails before its end",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/client/transaction/test_transaction_decision.py::test_a_half_message_that_is_not_safe_is_rolled_back_without_running_the_local_transaction",
    seed=597,
)
def slow_flush_counts_as_stored(patches: Patches) -> None:
    """The local transaction runs although the broker answered that the half message is not yet on its disk."""
    target = "rocketmq_broker.client.transaction.transaction_decision:state_without_listener"
    decide = patches.original(target)

    def state_without_listener(status: SendStatus) -> LocalTransactionState | None:
        state: LocalTransactionState | None = None if status is SendStatus.FLUSH_DISK_TIMEOUT else decide(status)
        return state

    patches.replace(target, state_without_listener)


@planted_bug(
    needs="the first attempt of a half message fails, and then its COMMIT is lost",
    breaks=Promise.VISIBLE_AFTER_COMMIT,
    noticed_by="tests/unit/client/producer/test_message_sender.py::test_the_result_of_a_half_message_has_the_id_of_the_attempt_that_was_stored",
    seed=48,
)
def first_id_kept(patches: Patches) -> None:
    """After a second attempt the local transaction runs with the id of the first one, not of the stored half message."""
    target = "rocketmq_broker.client.producer.message_sender:MessageSender._send"
    send = patches.original(target)

    async def _send(
        self: Any, deadline: Any, topic: str, ready: Callable[[], WireMessage], queue: MessageQueue | None
    ) -> SendResult:
        ids: list[str] = []

        def noted() -> WireMessage:
            wire = ready()
            ids.append(wire.unique_id)
            return wire

        result: SendResult = await send(self, deadline, topic, noted, queue)
        return replace(result, message_id=ids[0])

    patches.replace(target, _send)


@planted_bug(
    needs="the disk is slow, and the power fails between the offsets and the decisions",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/server/transactions/test_transactional_messages.py::test_consumer_offsets_are_noted_when_what_they_rest_on_is_on_disk",
    seed=None,
)
def offsets_noted_before_flush(patches: Patches) -> None:
    """The offsets of the half queue are saved before the decisions that they pass are on the disk."""
    target = "rocketmq_broker.server.transactions.transaction_notes:TransactionNotes.note_offsets"

    def note_offsets(self: Any) -> None:
        self._kept = self._messages.table.advance_offsets()
        group = topics.TRANSACTION_CONSUMER_GROUP
        self._consumer_offsets.commit(group, topics.HALF_TOPIC, 0, self._kept.half)
        self._consumer_offsets.commit(group, topics.OP_HALF_TOPIC, 0, self._kept.op)

    patches.replace(target, note_offsets)


@planted_bug(
    needs="a message waits for its redelivery, and the power fails when it is due",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/server/schedule/test_delayed_delivery.py::test_the_offset_of_a_level_passes_a_delivered_message_once_that_is_on_the_disk",
    seed=557,
)
def delay_offset_before_flush(patches: Patches) -> None:
    """The offset of delayed messages passes one that was delivered, before the delivered one is on the disk."""
    target = "rocketmq_broker.server.schedule.delayed_delivery:DelayedDelivery._note_delivered"
    note = patches.original(target)

    def _note_delivered(self: Any, end_position: int, level: Any, offset: int) -> None:
        note(self, end_position, level, offset)
        self._offsets.put(level.queue_id + 1, offset + 1)

    patches.replace(target, _note_delivered)
