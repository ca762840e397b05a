"""The consumer of a service with an inbox. Its listener acknowledges messages after the inbox has stored them."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    MessageListener,
    PushConsumer,
    ResultPositions,
    RpcHook,
)
from rocketmq_broker.message import MessageExt
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure, DatabaseUnavailable
from service_runtime.database.sessions import is_taken
from service_runtime.failing.trying_again import try_until_done
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.observing.context import logging_about_message, span_about

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that moves a message to the dead-letter topic without retries."""
_THREADS: Final = 8
"""The number of threads whose messages `BatchedStore` stores together."""
_MAX_BATCH: Final = 256
_TURN_TIMEOUT_S: Final = 60.0
_MAX_FAILURES_ALONE: Final = 2
_PAUSE_PER_MESSAGE_S: Final = 0.008
_MIN_PAUSE_S: Final = 0.02
_MAX_PAUSE_S: Final = 0.1

_Call = tuple[Sequence[MessageExt], Future[None]]
"""The messages of one call, and a future that is done when they are stored."""

logger = logging.getLogger(__name__)


def inbox_consumer(
    group: str,
    tags: Mapping[str, str],
    listener: MessageListener,
    *,
    namesrv_addr: str,
    loop: ClientLoop,
    rpc_hook: RpcHook | None = None,
    results: ResultPositions | None = None,
) -> ConsumerThread:
    """Returns a consumer that starts at the first message of each queue. `tags` maps each topic to the tag to consume.

    `rpc_hook` is called for each pull. `results` stores the group's positions in the service's database.
    """
    consumer = PushConsumer(
        group,
        namesrv_addr=namesrv_addr,
        rpc_hook=rpc_hook,
        results=results,
        consume_thread_max=_THREADS,
        consume_message_batch_max_size=_MAX_BATCH,
        pull_batch_size=_MAX_BATCH,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, tags)


class BatchedStore:
    """Stores the messages of several threads in one database transaction (group commit). Thread-safe.

    A transaction for twenty messages costs about as much as a transaction for one message, and so does the work that it triggers.
    Messages are therefore collected during a pause after each transaction. The pause grows with the number of messages, from 20
    to 100 ms. A message that arrives after the pause is stored at once. If a transaction fails, the messages of each thread are
    stored separately, so that messages that cannot be stored affect no other thread.
    """

    def __init__(self, store: Callable[[Sequence[MessageExt]], None], world: World) -> None:
        """Creates the object. `store` must store messages durably before it returns.

        `store` may be called twice with the same messages.
        """
        self._store, self._world = store, world
        self._turn = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._pause_ends_s = 0.0

    def __call__(self, messages: Sequence[MessageExt]) -> None:
        """Stores messages durably before it returns. Raises the error of `store`, and DatabaseUnavailable if `store` hangs."""
        stored: Future[None] = Future()
        self._waiting.append((messages, stored))
        if is_taken(self._turn, _TURN_TIMEOUT_S, self._world.acquire):
            try:
                while not stored.done():
                    self._store_waiting()
            finally:
                self._turn.release()
        elif stored.cancel():
            # Another thread's call hangs, perhaps on its connection alone.
            self._store(messages)
            return
        elif not stored.done():
            raise DatabaseUnavailable(f"the messages were not stored within {_TURN_TIMEOUT_S:g} s")
        stored.result()

    def _store_waiting(self) -> None:
        if _size(self._waiting.copy()) < _MAX_BATCH:
            self._world.sleep(max(0.0, self._pause_ends_s - self._world.steady_s()))
        calls: list[_Call] = []
        try:
            while self._waiting and _size(calls) < _MAX_BATCH:
                call = self._waiting.popleft()
                if call[1].set_running_or_notify_cancel():
                    calls.append(call)
            self._store_calls(calls)
        finally:
            for _, stored in calls:
                if not stored.done():  # An error that is no Exception ends this thread. The others must not wait forever.
                    stored.set_exception(DatabaseUnavailable("the thread that stored the messages was interrupted"))
        pause_s = min(_MAX_PAUSE_S, max(_MIN_PAUSE_S, _size(calls) * _PAUSE_PER_MESSAGE_S))
        self._pause_ends_s = self._world.steady_s() + pause_s

    def _store_calls(self, calls: Sequence[_Call]) -> None:
        """Stores the messages of all calls together, and separately if that fails.

        After two failures without a success, the remaining calls get the error of the joint transaction.
        """
        together = self._error_of([message for messages, _ in calls for message in messages])
        failures, has_passed = 0, False
        for messages, stored in calls:
            error = together
            if together is not None and len(calls) > 1 and (has_passed or failures < _MAX_FAILURES_ALONE):
                error = self._error_of(messages)
                failures += error is not None
                has_passed = has_passed or error is None
            if error is None:
                stored.set_result(None)
            else:
                stored.set_exception(error)

    def _error_of(self, messages: Sequence[MessageExt]) -> Exception | None:
        try:
            self._store(messages)
        except Exception as error:
            return error
        return None


def _size(calls: Iterable[_Call]) -> int:
    return sum(len(messages) for messages, _ in calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxListener:
    """Stores messages in an inbox, and acknowledges them. Unreadable messages become dead letters.

    While the database is unavailable, the listener holds the messages and retries. An outage therefore causes delays, but no
    redelivery.
    """

    read: Callable[[MessageExt], object]
    """Reads a message's body. Raises `unreadable`."""
    unreadable: type[Exception]
    store: Callable[[Sequence[MessageExt]], None]
    """Stores messages durably before it returns. Raises DatabaseFailure."""
    ring: Callable[[], None]
    """A function that is called after messages were stored."""
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages on a thread of the push consumer. Raises MessagesWithdrawn if their queue was reassigned."""
        readable = [message for message in messages if self._is_readable(message, context)]
        if readable:
            with span_about(readable, "store messages"):
                try_until_done(lambda: self._is_stored(readable), lambda seconds: self.hold(context, seconds))
            self.ring()
        return ConsumeStatus.CONSUME_SUCCESS

    def _is_stored(self, messages: Sequence[MessageExt]) -> bool:
        try:
            self.store(messages)
        except DatabaseFailure as error:
            logger.warning("could not store %d messages in the inbox; retrying, no message is lost: %s", len(messages), error)
            return False
        return True

    def _is_readable(self, message: MessageExt, context: ConsumeContext) -> bool:
        try:
            self.read(message)
        except self.unreadable as error:
            with logging_about_message(message):
                logger.error("message %s is moved to the dead-letter topic: its body is invalid: %s", message.message_id, error)
            context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
            return False
        return True
