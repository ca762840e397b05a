"""Bugs planted in the broker's client: producers and consumers."""

from collections.abc import Iterable
from typing import Any

from lab.simulation.judges.violation import Promise
from rocketmq_broker.client.errors import RequestTimedOut
from rocketmq_broker.client.producer.send_result import SendResult, SendStatus
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.message import Message, MessageQueue
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug


@planted_bug(
    needs="a consumer that dies with messages in several threads",
    breaks=Promise.OFFSET_BEHIND_WORK,
    noticed_by="tests/unit/client/pull/test_process_queue.py::test_a_gap_holds_the_offset_however_much_after_it_is_done",
    seed=40,
)
def offset_after_newest_handled(patches: Patches) -> None:
    """A consumer commits the offset after the newest message that it has handled, though other threads still have older ones."""
    target = "rocketmq_broker.client.pull.process_queue:ProcessQueue.acknowledge"
    remove = patches.original(target)

    def acknowledge(self: Any, queue_offsets: Iterable[int]) -> None:
        offsets = list(queue_offsets)
        remove(self, offsets)
        while offsets and self._order and self._order[0] <= max(offsets):
            self._order.popleft()

    patches.replace(target, acknowledge)


@planted_bug(
    needs="a second consumer that joins while messages are in hand",
    breaks=Promise.OFFSET_BEHIND_WORK,
    noticed_by="tests/unit/client/rebalance/test_assignment.py::test_a_queue_that_is_given_up_is_left_at_its_oldest_open_message",
    seed=340,
)
def queue_left_at_next_pull(patches: Patches) -> None:
    """A consumer that gives up a queue in a rebalance commits the offset of its next pull, not of its oldest open message."""
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


@planted_bug(
    needs="an answer to a half message that is lost with its connection",
    breaks=Promise.LIES_THERE_ONCE,
    noticed_by="tests/unit/client/producer/test_message_sender.py::test_each_attempt_of_a_half_message_is_a_transaction_of_its_own",
    seed=766,
)
def one_id_for_all_attempts(patches: Patches) -> None:
    """A half message that is sent again keeps the id of the first attempt, so that two half messages have one transaction id."""
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


@planted_bug(
    needs="a frame or a broker that is lost between a send and its answer",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/client/producer/test_send_requests.py::test_a_message_whose_answer_does_not_come_in_time_is_not_said_to_be_stored",
    seed=16,
)
def silence_counts_as_stored(patches: Patches) -> None:
    """A message whose answer does not come in time counts as stored."""
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


@planted_bug(
    needs="a number of consumers that does not divide the number of queues",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/unit/client/rebalance/test_allocation.py::test_every_queue_has_exactly_one_owner_and_shares_differ_by_one_at_most",
    seed=1,
)
def queues_left_over(patches: Patches) -> None:
    """The queues are divided among the consumers without the remainder, which no consumer gets."""

    def allocate_averagely(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
        all_queues, all_clients = sorted(queues), sorted(set(client_ids))
        if own_id not in all_clients:
            return []
        share = len(all_queues) // len(all_clients)
        begin = all_clients.index(own_id) * share
        return all_queues[begin : begin + share]

    patches.replace("rocketmq_broker.client.rebalance.rebalance:allocate_averagely", allocate_averagely)


@planted_bug(
    needs="a broker that restarts and has forgotten its clients",
    breaks=Promise.NOTHING_PENDING,
    noticed_by="tests/unit/client/instance/test_heartbeats.py::test_in_the_background_a_heartbeat_is_sent_as_soon_as_something_changes",
    seed=16,
)
def greets_only_once(patches: Patches) -> None:
    """A client sends no further heartbeat to a broker that has answered the same one before."""
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
