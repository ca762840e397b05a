"""One call of the listener with some messages, and its result."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from rocketmq_broker.client.checks.listener_check import is_async
from rocketmq_broker.client.errors import MessagesWithdrawn
from rocketmq_broker.client.instance.namespace import Namespace
from rocketmq_broker.client.listeners import ConsumeContext, ConsumeStatus, MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.queue_requests import UnreadableMessage
from rocketmq_broker.client.push.listener_runners import ListenerCancelled, ListenerNotRun
from rocketmq_broker.message import MessageExt

logger = logging.getLogger(__name__)

TO_THE_DEAD_LETTERS: Final = -1
"""The delay level that moves a message to the dead-letter topic without further redeliveries."""


def with_namespace(listener: MessageListener, namespace: Namespace) -> MessageListener:
    """Returns a listener that removes the namespace from topics before it calls `listener`.

    It runs in a thread or as a task, like `listener`.
    """
    if not namespace.name:
        return listener

    def call(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | Awaitable[ConsumeStatus | None] | None:
        context.message_queue = namespace.unwrap_queue(context.message_queue)
        return listener(namespace.unwrap_messages(messages), context)

    async def call_async(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | None:
        answer = call(messages, context)
        return await answer if isinstance(answer, Awaitable) else answer

    return call_async if is_async(listener) else call


class ListenerCall:
    """One call of the listener with messages of a queue. The runner calls `run`; call all other methods on the event loop."""

    __slots__ = ("_began_s", "_is_orderly", "_listener", "context", "messages", "process_queue")

    def __init__(
        self,
        listener: MessageListener,
        process_queue: ProcessQueue,
        messages: list[MessageExt],
        context: ConsumeContext,
        *,
        is_orderly: bool = False,
    ):
        """`context` is passed to the listener."""
        self._listener = listener
        self._is_orderly = is_orderly
        self.process_queue = process_queue
        self.messages = messages
        self.context = context
        self._began_s = process_queue.now_s()

    @property
    def took_s(self) -> float:
        """Returns the seconds since the listener was called."""
        return self.process_queue.now_s() - self._began_s

    def take_and_run(self, take: Callable[[], list[MessageExt]]) -> ConsumeStatus | Awaitable[ConsumeStatus | None] | None:
        """Takes the waiting messages, and calls the listener with them. Raises the same errors as `run`."""
        self.messages = take()
        return self.run()

    def run(self) -> ConsumeStatus | Awaitable[ConsumeStatus | None] | None:
        """Calls the listener, and returns its result, or an awaitable if it is async.

        Raises ListenerNotRun if this consumer no longer owns the queue.
        """
        if self.process_queue.is_dropped:
            raise ListenerNotRun(f"{self.process_queue.queue} was released before the listener was called")
        readable = self._readable()
        self._began_s = self.process_queue.now_s()
        return self._listener(readable, self.context) if readable else ConsumeStatus.CONSUME_SUCCESS

    def _readable(self) -> list[MessageExt]:
        """Returns the messages for the listener. Marks unreadable messages, which are then moved to the dead-letter topic.

        In an orderly consumer, later messages wait until the unreadable message has been moved.
        """
        readable: list[MessageExt] = []
        for message in self.messages:
            if isinstance(message, UnreadableMessage):
                self.context.reconsume_later(message, TO_THE_DEAD_LETTERS)
                if self._is_orderly:
                    break
            else:
                readable.append(message)
        return readable

    def is_abandoned(self, error: BaseException | None) -> bool:
        """Returns True if the messages neither succeeded nor failed, because the listener did not run or had to stop."""
        is_withdrawn = isinstance(error, MessagesWithdrawn) and self.process_queue.withdrawn.is_set()
        return is_withdrawn or isinstance(error, ListenerNotRun | ListenerCancelled)

    def sort_out(self, status: ConsumeStatus | None, error: BaseException | None) -> tuple[list[MessageExt], list[MessageExt]]:
        """Returns two lists: the consumed messages, and the messages to deliver again."""
        if error is not None:
            logger.warning("the listener failed on %s", self._what(), exc_info=error)
        elif status not in (ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER):
            logger.warning(
                "the listener returned %r for %s, which counts as RECONSUME_LATER: "
                "return ConsumeStatus.CONSUME_SUCCESS or RECONSUME_LATER",
                status,
                self._what(),
            )
        if error is not None or status is not ConsumeStatus.CONSUME_SUCCESS:
            return [], self.messages
        if not self.context.postponed:
            return self.messages, []
        postponed = self.context.postponed
        consumed = [message for message in self.messages if message.queue_offset not in postponed]
        return consumed, [message for message in self.messages if message.queue_offset in postponed]

    def delay_level_of(self, message: MessageExt) -> int:
        """Returns the delay level of the message's redelivery."""
        own = self.context.postponed.get(message.queue_offset)
        return self.context.delay_level_when_next_consume if own is None else own

    def _what(self) -> str:
        ids = ", ".join(message.message_id for message in self.messages[:3])
        return f"{len(self.messages)} message(s) of {self.process_queue.queue} ({ids}{', ...' if len(self.messages) > 3 else ''})"
