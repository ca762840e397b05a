"""Planted bugs that have an effect only if two faults occur together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.message import MessageQueue, topics


def _leave_the_recovered_log_unsynced(patches: Patches) -> None:
    target = "rocketmq_broker.store.recovery.recovery:_Recovery._cut_tail"
    cut = patches.original(target)

    def _cut_tail(self: Any, scan: Any, progress: Any) -> None:
        if scan.has_torn_tail:
            cut(self, scan, progress)

    patches.replace(target, _cut_tail)


def _repeat_a_failed_sync(patches: Patches) -> None:
    target = "rocketmq_broker.server.durability.group_commit:GroupCommit._on_answer"
    on_answer = patches.original(target)

    def _on_answer(self: Any, error: int) -> None:
        if error and self._is_sync and self._flushing_to is not None:
            self._flushing_to = None
            self._flush()
        else:
            on_answer(self, error)

    patches.replace(target, _on_answer)


def _go_on_after_a_slow_flush(patches: Patches) -> None:
    target = "rocketmq_broker.client.transaction.transaction_decision:state_without_listener"
    decide = patches.original(target)

    def state_without_listener(status: SendStatus) -> LocalTransactionState | None:
        state: LocalTransactionState | None = None if status is SendStatus.FLUSH_DISK_TIMEOUT else decide(status)
        return state

    patches.replace(target, state_without_listener)


def _go_on_with_the_first_id(patches: Patches) -> None:
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


def _note_offsets_before_the_flush(patches: Patches) -> None:
    target = "rocketmq_broker.server.transactions.transaction_notes:TransactionNotes.note_offsets"

    def note_offsets(self: Any) -> None:
        self._kept = self._messages.table.advance_offsets()
        group = topics.TRANSACTION_CONSUMER_GROUP
        self._consumer_offsets.commit(group, topics.HALF_TOPIC, 0, self._kept.half)
        self._consumer_offsets.commit(group, topics.OP_HALF_TOPIC, 0, self._kept.op)

    patches.replace(target, note_offsets)


def _advance_delays_before_the_flush(patches: Patches) -> None:
    target = "rocketmq_broker.server.schedule.delayed_delivery:DelayedDelivery._note_delivered"
    note = patches.original(target)

    def _note_delivered(self: Any, end_position: int, level: Any, offset: int) -> None:
        note(self, end_position, level, offset)
        self._offsets.put(level.queue_id + 1, offset + 1)

    patches.replace(target, _note_delivered)


PLANTED: Final = (
    Planted(
        "recovered-log-unsynced",
        PlantedArea.TWO_FAULTS,
        "Recovery shows what it found in the commit log without a sync, unless it had to cut a torn tail.",
        "the broker's process is killed before a flush, and later the power fails",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _leave_the_recovered_log_unsynced,
    ),
    Planted(
        "failed-sync-repeated",
        PlantedArea.TWO_FAULTS,
        "A sync that failed is repeated, and its success counts, though the system has dropped the pages.",
        "a sync fails, and later the power fails",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _repeat_a_failed_sync,
    ),
    Planted(
        "slow-flush-counts-as-stored",
        PlantedArea.TWO_FAULTS,
        "The local transaction runs although the broker answered that the half message is not yet on its disk.",
        "the disk takes more than 5 s for a sync, and the power fails before its end",
        Promise.ORDER_HAS_CREDIT,
        _go_on_after_a_slow_flush,
    ),
    Planted(
        "first-id-kept",
        PlantedArea.TWO_FAULTS,
        "After a second attempt the local transaction runs with the id of the first one, not of the stored half message.",
        "the first attempt of a half message fails, and then its COMMIT is lost",
        Promise.ORDER_HAS_CREDIT,
        _go_on_with_the_first_id,
    ),
    Planted(
        "offsets-noted-before-flush",
        PlantedArea.TWO_FAULTS,
        "The offsets of the half queue are saved before the decisions that they pass are on the disk.",
        "the disk is slow, and the power fails between the offsets and the decisions",
        Promise.ORDER_HAS_CREDIT,
        _note_offsets_before_the_flush,
    ),
    Planted(
        "delay-offset-before-flush",
        PlantedArea.TWO_FAULTS,
        "The offset of delayed messages passes one that was delivered, before the delivered one is on the disk.",
        "a message waits for its redelivery, and the power fails when it is due",
        Promise.ACKNOWLEDGED_IS_KEPT,
        _advance_delays_before_the_flush,
    ),
)
