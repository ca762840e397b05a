"""Orderly consumption: each queue in order, one batch at a time (RocketMQ's ConsumeMessageOrderlyService)."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

from rocketmq_broker.client.listeners import ConsumeContext, ConsumeStatus, MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.queue_requests import UnreadableMessage
from rocketmq_broker.client.push.listener_call import ListenerCall
from rocketmq_broker.client.push.listener_runners import ListenerRunner, NoThreadLeft
from rocketmq_broker.client.push.message_return import MessageReturn
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.client.push.orderly_queue import OrderlyQueue, split_at_first_postponed
from rocketmq_broker.client.rebalance.queue_locks import OwnQueueLocks
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.remoting.tasks import Tasks

logger = logging.getLogger(__name__)

_MIN_SUSPENSION_MS = 10
_USUAL_SUSPENSION_MS = 1_000
_MAX_SUSPENSION_MS = 30_000
_LOCK_IS_MISSING_S = 1.0
_NO_THREAD_LEFT_S = 5.0


@dataclass(slots=True, eq=False)
class OrderlyConsumption:
    """Consumes each queue in order. A failed batch is redelivered before later messages, up to `max_reconsume_times`.

    `locks` and `message_return` are None for broadcasting. `max_reconsume_times` is None for no limit.
    """

    listener: MessageListener
    threads: ListenerRunner
    on_progress: Callable[[ProcessQueue], None]
    message_return: MessageReturn | None
    locks: OwnQueueLocks | None
    _: KW_ONLY
    batch_size: int
    max_reconsume_times: int | None
    statistics: ConsumerStatistics
    _queues: dict[ProcessQueue, OrderlyQueue] = field(default_factory=dict, init=False)
    _tasks: Tasks = field(default_factory=Tasks, init=False)
    _is_stopped: bool = field(default=False, init=False)

    async def may_begin(self, queue: MessageQueue) -> bool:
        """Tries to lock the queue at the broker. Returns True if this client holds the lock."""
        return self.locks is None or await self.locks.acquire(queue)

    def arrived(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Adds the messages after the waiting ones, and calls the listener if it is idle."""
        queue = self._queues.setdefault(process_queue, OrderlyQueue())
        queue.add(messages)
        self._next_batch(process_queue, queue)

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        """Waits for the running listener. Its result still counts, because this client still holds the lock."""
        queue = self._queues.pop(process_queue, None)
        if queue is not None:
            await queue.idle.wait()

    async def release(self, process_queue: ProcessQueue) -> None:
        """Releases the lock."""
        if self.locks is not None:
            await self.locks.release([process_queue.queue])

    async def stop(self, timeout_s: float) -> None:
        """Waits for running listeners. The caller releases the locks after it has stored the offsets."""
        self._is_stopped = True
        await self.threads.stop(timeout_s)
        await self._tasks.stop()

    def _next_batch(self, process_queue: ProcessQueue, queue: OrderlyQueue) -> None:
        if process_queue.is_dropped or self._is_stopped:
            return
        if self.locks is not None and not self.locks.holds(process_queue.queue):
            if not queue.is_busy:
                queue.is_busy = True
                self._tasks.start("client-queue-lock-missing", self._resume_after(process_queue, queue, _LOCK_IS_MISSING_S))
            return
        batch = queue.take(self.batch_size)
        if batch:
            context = ConsumeContext(process_queue.queue, withdrawn=process_queue.withdrawn)
            call = ListenerCall(self.listener, process_queue, batch, context, is_orderly=True)
            self.threads.submit(call.run, partial(self._answered, call, queue))

    def _answered(
        self, call: ListenerCall, queue: OrderlyQueue, status: ConsumeStatus | None, error: BaseException | None
    ) -> None:
        queue.idle.set()
        if isinstance(error, NoThreadLeft):
            queue.put_back_uncounted(call.messages)
            self._tasks.start("client-no-thread-left", self._resume_after(call.process_queue, queue, _NO_THREAD_LEFT_S))
        elif not call.is_abandoned(error):
            _, postponed = call.sort_out(status, error)
            consumed, repeated = split_at_first_postponed(call.messages, postponed)
            self.statistics.consumed(call.process_queue.queue.topic, len(consumed), len(repeated), call.took_s)
            self._acknowledge(call.process_queue, consumed)
            if repeated and not call.process_queue.is_dropped:
                self._tasks.start(f"client-suspended-{call.process_queue.queue.queue_id}", self._suspend(call, queue, repeated))
            else:
                self._resume(call.process_queue, queue)

    async def _suspend(self, call: ListenerCall, queue: OrderlyQueue, repeated: list[MessageExt]) -> None:
        remaining = [message for message in repeated if not await self._is_given_up(message)]
        given_up = [message for message in repeated if message not in remaining]
        self._acknowledge(call.process_queue, given_up)
        queue.put_back(remaining)
        await self._resume_after(call.process_queue, queue, _suspension_s(call.context) if remaining else 0)

    async def _is_given_up(self, message: MessageExt) -> bool:
        """Moves the message to the dead-letter topic if no redelivery is left. Returns False if it must be delivered again."""
        has_redelivery_left = self.max_reconsume_times is None or message.reconsume_times < self.max_reconsume_times
        if has_redelivery_left and not isinstance(message, UnreadableMessage):
            return False
        return self.message_return is None or await self.message_return.to_dead_letters(message)

    async def _resume_after(self, process_queue: ProcessQueue, queue: OrderlyQueue, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._resume(process_queue, queue)

    def _resume(self, process_queue: ProcessQueue, queue: OrderlyQueue) -> None:
        queue.is_busy = False
        self._next_batch(process_queue, queue)

    def _acknowledge(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        if messages:
            process_queue.acknowledge([message.queue_offset for message in messages])
            self.on_progress(process_queue)


def _suspension_s(context: ConsumeContext) -> float:
    """Returns the pause of the queue in seconds. Replaces a setting that is not a number with the default, and logs a warning."""
    asked = context.suspend_current_queue_time_ms
    if not isinstance(asked, int | float):
        logger.warning(
            "suspend_current_queue_time_ms must be a number of milliseconds, not %r: pausing %s for %d ms",
            asked,
            context.message_queue,
            _USUAL_SUSPENSION_MS,
        )
        asked = _USUAL_SUSPENSION_MS
    return min(max(asked, _MIN_SUSPENSION_MS), _MAX_SUSPENSION_MS) / 1000
