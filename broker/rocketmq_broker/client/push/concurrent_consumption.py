"""Concurrent consumption: many messages at a time, in any order (RocketMQ's ConsumeMessageConcurrentlyService)."""

import asyncio
import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial

from rocketmq_broker.client.listeners import ConsumeContext, ConsumeStatus, MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.push.listener_call import ListenerCall
from rocketmq_broker.client.push.listener_runners import ListenerRunner, NoThreadLeft
from rocketmq_broker.client.push.message_return import MessageReturn
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.remoting.tasks import Tasks

logger = logging.getLogger(__name__)

LOCAL_RETRY_S = 5.0
_GIVING_BACK_AT_ONCE = 4

_ToReturn = tuple[ProcessQueue, MessageExt, int, bool]
"""A message to return: its process queue, the message, the delay level, and whether its redelivery count increases."""


class ConcurrentConsumption:
    """Passes the waiting messages of a queue to the next free thread. A failed message is sent back before it is acknowledged."""

    def __init__(
        self,
        listener: MessageListener,
        threads: ListenerRunner,
        on_progress: Callable[[ProcessQueue], None],
        message_return: MessageReturn | None,
        *,
        batch_size: int,
        statistics: ConsumerStatistics,
    ) -> None:
        """`message_return` is None for broadcasting. Failed messages are then logged and skipped, as in RocketMQ."""
        self._listener = listener
        self._threads = threads
        self._on_progress = on_progress
        self._message_return = message_return
        self._statistics = statistics
        self._waiting: defaultdict[ProcessQueue, WaitingMessages] = defaultdict(partial(WaitingMessages, batch_size))
        self._to_return: asyncio.Queue[_ToReturn] = asyncio.Queue()
        self._tasks = Tasks()
        if message_return is not None:
            for number in range(_GIVING_BACK_AT_ONCE):
                self._tasks.start(f"client-message-return-{number}", self._give_back(message_return))

    async def may_begin(self, queue: MessageQueue) -> bool:
        """Returns True, because concurrent consumption does not lock queues."""
        return True

    def arrived(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Queues the messages for the listener threads. Fills waiting calls first, and adds new calls for the rest."""
        waiting = self._waiting[process_queue]
        for _ in range(waiting.add(messages)):
            context = ConsumeContext(process_queue.queue, withdrawn=process_queue.withdrawn)
            call = ListenerCall(self._listener, process_queue, [], context)
            self._threads.submit(partial(call.take_and_run, waiting.take), partial(self._answered, call, waiting))

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        """Discards the waiting messages of a dropped queue. They are delivered to its next owner."""
        self._waiting.pop(process_queue, None)

    async def release(self, process_queue: ProcessQueue) -> None:
        """Does nothing, because concurrent consumption does not lock queues."""

    async def stop(self, timeout_s: float) -> None:
        """Waits for running listeners, and then until their failed messages have been returned to the broker."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._threads.stop(timeout_s)
        try:
            async with asyncio.timeout(max(0.1, deadline - asyncio.get_running_loop().time())):
                await self._to_return.join()
        except TimeoutError:
            logger.warning(
                "%d messages were not returned to the broker before the shutdown; they will be delivered again",
                self._to_return.qsize(),
            )
        await self._tasks.stop()

    def _answered(
        self, call: ListenerCall, waiting: "WaitingMessages", status: ConsumeStatus | None, error: BaseException | None
    ) -> None:
        if call.is_abandoned(error) or call.process_queue.is_dropped:
            return
        if isinstance(error, NoThreadLeft):
            self._try_again_here(call.process_queue, waiting.take())
            return
        consumed, postponed = call.sort_out(status, error)
        self._statistics.consumed(call.process_queue.queue.topic, len(consumed), len(postponed), call.took_s)
        if postponed and self._message_return is None:
            logger.warning("%d message(s) of %s failed and are skipped (broadcasting)", len(postponed), call.process_queue.queue)
            consumed, postponed = call.messages, []
        for message in postponed:
            is_counted = message.queue_offset not in call.context.given_way
            self._to_return.put_nowait((call.process_queue, message, call.delay_level_of(message), is_counted))
        if consumed:
            self._acknowledge(call.process_queue, consumed)

    def _acknowledge(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        process_queue.acknowledge([message.queue_offset for message in messages])
        self._on_progress(process_queue)

    async def _give_back(self, message_return: MessageReturn) -> None:
        while True:
            process_queue, message, delay_level, is_counted = await self._to_return.get()
            try:
                if process_queue.is_dropped:
                    continue
                give_back = message_return.give_back if is_counted else message_return.give_way
                if await give_back(message, delay_level):
                    self._acknowledge(process_queue, [message])
                else:
                    self._try_again_here(process_queue, [message])
            except Exception:
                logger.exception("message %s could not be returned to the broker", message.message_id)
                self._try_again_here(process_queue, [message])
            finally:
                self._to_return.task_done()

    def _try_again_here(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        """Calls the listener again later. Unlike Apache's client, does not increase the redelivery count."""
        self._tasks.start(f"client-local-retry-{messages[0].message_id}", self._again_later(process_queue, messages))

    async def _again_later(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        await asyncio.sleep(LOCAL_RETRY_S)
        if not process_queue.is_dropped:
            self.arrived(process_queue, messages)


class WaitingMessages:
    """The messages that wait for a listener call. A call takes up to `batch_size` waiting messages when it starts.

    Batches therefore grow while listeners are busy, and no message waits for a batch to fill. The event loop adds messages;
    the listeners' threads take them.
    """

    def __init__(self, batch_size: int) -> None:
        """`batch_size` is the maximum number of messages of one call."""
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._messages: deque[MessageExt] = deque()

    def add(self, messages: Sequence[MessageExt]) -> int:
        """Adds messages. Returns the number of listener calls to request in addition to those already requested."""
        with self._lock:
            before = self._calls()
            self._messages.extend(messages)
            return self._calls() - before

    def take(self) -> list[MessageExt]:
        """Returns the oldest messages for one of the calls that `add` requested. The list is never empty."""
        with self._lock:
            return [self._messages.popleft() for _ in range(min(self._batch_size, len(self._messages)))]

    def _calls(self) -> int:
        return -(-len(self._messages) // self._batch_size)
