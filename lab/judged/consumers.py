"""Consumers of the orders' topic: two pull each queue from its start; the listener of an orderly group sometimes fails."""

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from lab.judged.databases import ShopState
from lab.judged.observations import Interval, Observations, ObservedConsumption, ObservedPull, ObservedState, timed
from order_messages.order_created import TOPIC
from rocketmq_broker.client import (
    ClientError,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    MessageQueue,
    PullConsumer,
    PushConsumer,
)
from rocketmq_broker.message import MessageExt

PULLERS = 2
FAILING = 0.05
"""The share of the messages that the group's listener fails to consume at first."""
_PAUSE_S = 0.2
_RESTARTS_S = (5, 12)


@dataclass(frozen=True)
class JudgedConsumers:
    """The consumers of a run."""

    namesrv_addr: str
    observations: Observations
    state: ShopState
    chance: random.Random
    pulled: list[set[str]] = field(default_factory=lambda: [set() for _ in range(PULLERS)])
    """The orders that each pulling consumer has received."""
    consumed: dict[str, int] = field(default_factory=dict)
    """The offset before which the group has consumed all messages, by queue."""

    def run(self) -> None:
        """Consumes until the run is settled."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(PULLERS):
                tasks.create_task(self._pull_all(number))
            tasks.create_task(self._consume())

    async def _pull_all(self, number: int) -> None:
        async with PullConsumer(f"judged-{number}", namesrv_addr=self.namesrv_addr) as consumer, asyncio.TaskGroup() as tasks:
            followed: set[MessageQueue] = set()
            while not self.observations.is_settled.is_set():
                with suppress(ClientError):
                    for queue in set(await consumer.queues(TOPIC)) - followed:
                        followed.add(queue)
                        tasks.create_task(self._follow(consumer, queue, self.pulled[number]))
                await asyncio.sleep(_PAUSE_S)

    async def _follow(self, consumer: PullConsumer, queue: MessageQueue, pulled: set[str]) -> None:
        offset = 0
        while not self.observations.is_settled.is_set():
            observed = await observe_pull(consumer, queue, offset, suspend_ms=500)
            if observed is None:
                await asyncio.sleep(_PAUSE_S)
                continue
            self.observations.found.append(observed)
            orders = [order_id for _, order_id in observed.messages]
            pulled.update(orders)
            offset += len(orders)
            if orders:
                await asyncio.to_thread(self._observe_states, orders)

    def _observe_states(self, orders: list[str]) -> None:
        states = timed(partial(self.state.of_transactions, orders))
        self.observations.found.extend([ObservedState(order, states.at, states.value.get(order, "")) for order in orders])

    async def _consume(self) -> None:
        """Consumes as a member of the group, which leaves and joins again every few seconds."""
        for member in count():
            consumer = PushConsumer(
                "judged-group",
                namesrv_addr=self.namesrv_addr,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                instance_name=f"judged-{member}",
            )
            consumer.consumes(TOPIC, orderly=True)(self._listen)
            async with consumer:
                await self._settled_within(self.chance.uniform(*_RESTARTS_S))
            if self.observations.is_settled.is_set():
                return

    async def _settled_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.observations.is_settled.is_set():  # noqa: ASYNC110 (a thread sets it)
                    await asyncio.sleep(_PAUSE_S)

    async def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        (message,) = messages
        called = time.monotonic_ns()
        await asyncio.sleep(0)
        is_success = self.chance.random() >= FAILING
        queue = name_of(context.message_queue)
        at = Interval(called, time.monotonic_ns())
        self.observations.found.append(ObservedConsumption(queue, message.queue_offset, message.keys[0], at, is_success))
        if not is_success:
            context.suspend_current_queue_time_ms = 100
            return ConsumeStatus.RECONSUME_LATER
        self.consumed[queue] = max(self.consumed.get(queue, 0), message.queue_offset + 1)
        return ConsumeStatus.CONSUME_SUCCESS


async def observe_pull(consumer: PullConsumer, queue: MessageQueue, offset: int, *, suspend_ms: int) -> ObservedPull | None:
    """Pulls messages at `offset`. Returns None if there was no response."""
    called = time.monotonic_ns()
    try:
        answer = await consumer.pull(queue, offset, suspend_ms=suspend_ms)
    except ClientError:
        return None
    messages = tuple((message.queue_offset, message.keys[0]) for message in answer.messages)
    return ObservedPull(name_of(queue), offset, Interval(called, time.monotonic_ns()), messages)


async def read_queues(namesrv_addr: str) -> dict[str, list[ObservedPull]]:
    """Pulls each queue of the topic from its start to its end, with an empty pull at the end. Raises ClientError."""
    async with PullConsumer("judged-end", namesrv_addr=namesrv_addr) as consumer:
        found: dict[str, list[ObservedPull]] = {}
        for queue in await consumer.queues(TOPIC):
            pulls = found.setdefault(name_of(queue), [])
            while not pulls or pulls[-1].messages:
                observed = await observe_pull(consumer, queue, sum(len(pull.messages) for pull in pulls), suspend_ms=0)
                if observed is not None:
                    pulls.append(observed)
    return found


def name_of(queue: MessageQueue) -> str:
    """Returns the queue's name in a history."""
    return f"{queue.broker_name}/{queue.topic}/{queue.queue_id}"
