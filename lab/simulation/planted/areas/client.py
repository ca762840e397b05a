"""Bugs planted in the broker's client: producers and consumers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from rocketmq_broker.client.errors import RequestTimedOut
from rocketmq_broker.client.producer.send_result import SendResult, SendStatus
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.message import Message, MessageQueue


def _commit_after_the_newest_handled(patches: Patches) -> None:
    target = "rocketmq_broker.client.pull.process_queue:ProcessQueue.acknowledge"
    remove = patches.original(target)

    def acknowledge(self: Any, queue_offsets: Iterable[int]) -> None:
        offsets = list(queue_offsets)
        remove(self, offsets)
        while offsets and self._order and self._order[0] <= max(offsets):
            self._order.popleft()

    patches.replace(target, acknowledge)


def _leave_at_the_next_pull(patches: Patches) -> None:
    target = "rocketmq_broker.client.rebalance.assignment:Assignment._leave"

    async def _leave(self: Any, process_queue: ProcessQueue, offset: int | None) -> None:
        queue = process_queue.queue
        try:
            await self._consumption.quiesce(process_queue)
            self._store.update(queue, process_queue.next_offset if offset is None else offset)
            await self._store.persist([queue], confirmed=True)
            self._store.forget(queue)
            await self._consumption.release(process_queue)
        finally:
            self._leaving.discard(queue)
        if offset is not None:
            self.on_moved()

    patches.replace(target, _leave)


def _keep_the_id_at_each_attempt(patches: Patches) -> None:
    target = "rocketmq_broker.client.producer.message_sender:MessageSender.send"
    send_once = patches.original(target)

    async def send(
        self: Any,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        timeout_ms: int | None = None,
        new_id_each_attempt: bool = False,
    ) -> SendResult:
        result: SendResult = await send_once(self, message, queue, timeout_ms=timeout_ms)
        return result

    patches.replace(target, send)


def _take_silence_for_success(patches: Patches) -> None:
    target = "rocketmq_broker.client.producer.message_sender:SendRequests.send_message"
    ask = patches.original(target)

    async def send_message(
        self: Any, group: str, message: WireMessage, queue: MessageQueue, *, born_ms: int, timeout_ms: int
    ) -> SendResult:
        try:
            result: SendResult = await ask(self, group, message, queue, born_ms=born_ms, timeout_ms=timeout_ms)
        except RequestTimedOut:
            return SendResult(
                send_status=SendStatus.SEND_OK, message_id=message.unique_id, offset_message_id="", queue=queue, queue_offset=-1
            )
        return result

    patches.replace(target, send_message)


def _leave_queues_over(patches: Patches) -> None:
    def allocate_averagely(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
        all_queues, all_clients = sorted(queues), sorted(set(client_ids))
        if own_id not in all_clients:
            return []
        share = len(all_queues) // len(all_clients)
        begin = all_clients.index(own_id) * share
        return all_queues[begin : begin + share]

    patches.replace("rocketmq_broker.client.rebalance.rebalance:allocate_averagely", allocate_averagely)


def _greet_each_broker_once(patches: Patches) -> None:
    target = "rocketmq_broker.client.instance.heartbeats:Heartbeats._send_to"
    greet = patches.original(target)

    async def _send_to(self: Any, address: str, body: bytes) -> bool:
        known: dict[str, bytes] = self.__dict__.setdefault("_known_by", {})
        if known.get(address) == body:
            return True
        has_answered: bool = await greet(self, address, body)
        if has_answered:
            known[address] = body
        return has_answered

    patches.replace(target, _send_to)


PLANTED: Final = (
    Planted(
        "offset-after-newest-handled",
        PlantedArea.CLIENT,
        "A consumer commits the offset after the newest message that it has handled, though other threads still have older ones.",
        "a consumer that dies with messages in several threads",
        Promise.OFFSET_BEHIND_WORK,
        _commit_after_the_newest_handled,
    ),
    Planted(
        "queue-left-at-next-pull",
        PlantedArea.CLIENT,
        "A consumer that gives up a queue in a rebalance commits the offset of its next pull, not of its oldest open message.",
        "a second consumer that joins while messages are in hand",
        Promise.OFFSET_BEHIND_WORK,
        _leave_at_the_next_pull,
    ),
    Planted(
        "one-id-for-all-attempts",
        PlantedArea.CLIENT,
        "A half message that is sent again keeps the id of the first attempt, so that two half messages have one transaction id.",
        "an answer to a half message that is lost with its connection",
        Promise.ONE_OUTCOME,
        _keep_the_id_at_each_attempt,
    ),
    Planted(
        "silence-counts-as-stored",
        PlantedArea.CLIENT,
        "A message whose answer does not come in time counts as stored.",
        "a frame or a broker that is lost between a send and its answer",
        Promise.ORDER_HAS_CREDIT,
        _take_silence_for_success,
    ),
    Planted(
        "queues-left-over",
        PlantedArea.CLIENT,
        "The queues are divided among the consumers without the remainder, which nobody consumes.",
        "a number of consumers that does not divide the number of queues",
        Promise.ORDER_HAS_CREDIT,
        _leave_queues_over,
    ),
    Planted(
        "greets-only-once",
        PlantedArea.CLIENT,
        "A client sends no further heartbeat to a broker that has answered the same one before.",
        "a broker that restarts and has forgotten its clients",
        Promise.NOTHING_PENDING,
        _greet_each_broker_once,
    ),
)
