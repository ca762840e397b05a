"""A consumer that uses the simple consumer of Apache's Python client for RocketMQ 5, in threads of this module.

Listeners and their results are the same as for `consumer_thread`. But here the broker hides a received message for a limited
time, and identifies it by a receipt handle. So this module renews that time while a listener processes the message. After the
listener's result it acknowledges the message, hides it for a pause, or moves it to the dead letters.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from threading import Condition, Event, Lock, Thread
from typing import Any, Final

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageListener, MessageQueue, MessagesWithdrawn, QueueProgress
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from rocketmq_broker.message import MessageExt
from service_runtime.failing.holds import ASIDE_S
from service_runtime.messaging.apache_client import (
    ApacheRoute,
    apache_client,
    client_settings,
    in_a_line,
    of_apache,
    open_client,
    stopped,
)

MAX_RECONSUME_TIMES: Final = 16
"""The broker's default maximum of redeliveries for a group. An operator can change it with retryMaxTimes."""
_TIMEOUT_MS: Final = 3000
_POLL_S: Final = 1
"""The time in seconds that a poll waits.

The client polls its topics in turn, so a longer poll of a quiet topic would delay the messages of a busy one.
"""
_INVISIBLE_S: Final = 60
"""The time in seconds for which a received message is hidden. The messages of a dead process are redelivered after it."""
_RENEW_EVERY_S: Final = 20.0
_LOOK_AGAIN_S: Final = 1.0
_FAREWELL_S: Final = 2.0
_FIRST_PAUSE_S: Final = 10.0
_MAX_PAUSE_S: Final = 7200.0

logger = logging.getLogger(__name__)


def pause_before(redelivery: int, *, gives_way: bool) -> int:
    """Returns the pause before a redelivery in seconds. `redelivery` is 1 for the first one.

    It begins with 10 s, or with `ASIDE_S` if the message was postponed (`gives_way`), and doubles up to two hours.
    """
    first_s = ASIDE_S if gives_way else _FIRST_PAUSE_S
    return round(min(first_s * 2.0 ** min(redelivery - 1, 10), _MAX_PAUSE_S))


@dataclass(eq=False, slots=True)
class _BatchInHand:
    """The messages of one poll while a listener processes them.

    `lock` guards their receipt handles, which each renewal changes.
    """

    messages: Sequence[Any]
    lock: Lock = field(default_factory=Lock)

    def take(self) -> None:
        """Ends the renewal, so that the receipt handles no longer change."""
        with self.lock:
            self.messages = ()


class ApacheConsumer:
    """Starts, stops and monitors Apache's simple consumer, like `consumer_thread.ConsumerThread`. Thread-safe."""

    def __init__(
        self,
        listener: MessageListener,
        tags: Mapping[str, str],
        *,
        group: str,
        endpoints: str,
        threads: int,
        batch_size: int = 1,
        max_reconsume_times: int = MAX_RECONSUME_TIMES,
    ) -> None:
        """Calls the synchronous function `listener` on `threads` threads.

        `tags` maps each topic to the tag of the messages to consume.
        A message that fails after `max_reconsume_times` redeliveries becomes a dead letter. The broker's limit applies too. A
        delay level above 0 means the usual pause, because the broker does not report its delay levels.
        """
        self._listener = listener
        self._tags = dict(tags)
        self._group = group
        self._endpoints = endpoints
        self._threads = threads
        self._batch_size = batch_size
        self._max_reconsume_times = max_reconsume_times
        self._client: Any = None
        self._route: ApacheRoute | None = None
        self._why_refused: str | None = None
        self._batches: set[_BatchInHand] = set()
        self._running = 0
        self._changed = Condition()
        self._stopping = Withdrawal()
        self._ended = Event()

    @property
    def group(self) -> str:
        """The name of the consumer group."""
        return self._group

    def start(self) -> None:
        """Starts the client, and starts consuming. Succeeds without a running broker.

        Raises ClientError if Apache's client is not installed.
        """
        expressions = {topic: apache_client().FilterExpression(tag) for topic, tag in self._tags.items()}
        self._client = open_client(
            "SimpleConsumer",
            consumer_group=self._group,
            subscription=expressions,
            await_duration=_POLL_S,
            **client_settings(self._endpoints, _TIMEOUT_MS),
        )
        self._route = ApacheRoute(self._client, tuple(self._tags), _TIMEOUT_MS)
        self._running = self._threads
        for number in range(self._threads):
            Thread(target=self._consume_all, args=[self._route], name=f"{self._group}-{number}", daemon=True).start()
        Thread(target=self._renew_all, name=f"{self._group}-renewal", daemon=True).start()

    def stop(self, timeout_s: float) -> None:
        """Leaves the group, after waiting up to `timeout_s` for messages that are being processed.

        Unacknowledged messages are redelivered when the time for which they are hidden ends.
        """
        self._stopping.set()
        with self._changed:
            if not self._changed.wait_for(lambda: self._running == 0, timeout_s + _POLL_S + _FAREWELL_S):
                logger.warning("%d listeners were still running at shutdown; their messages will be redelivered", self._running)
        self._ended.set()
        if self._client is not None:
            stopped("consumer", self._client)

    def why_unready(self) -> str | None:
        """Returns the reason why no message can arrive now, in one line.

        Returns None if the broker returns a route and accepts polls.
        """
        return "it is not started" if self._route is None else self._why_missing(self._route) or self._why_refused

    def progress(self) -> list[QueueProgress] | None:
        """Returns None, because consumers of RocketMQ 5's API have no queues.

        `rocketmq-admin groups` shows the messages in process.
        """
        return None

    def count_dead_letters(self) -> int | None:
        """Returns None, because RocketMQ 5's API has no request for this. `rocketmq-admin dead-letters` lists them."""
        return None

    def _why_missing(self, route: ApacheRoute) -> str | None:
        return route.why_missing(next(iter(self._tags)))

    def _consume_all(self, route: ApacheRoute) -> None:
        try:
            while not self._stopping.is_set():
                if received := self._receive(route):
                    self._consume(received)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _receive(self, route: ApacheRoute) -> Sequence[Any]:
        """Returns the messages of one poll, which have the same topic; empty if there were none.

        After a failure it waits until the broker has a route for the topic again, and returns an empty sequence.
        """
        try:
            received: Sequence[Any] = self._client.receive(self._batch_size, _INVISIBLE_S)
        except Exception as error:  # the client's errors have no common base class
            why = in_a_line(error)
            if why != self._why_refused:
                logger.warning("no message can be received: %s", why)
            self._why_refused = why
            while not self._stopping.wait(_LOOK_AGAIN_S) and self._why_missing(route) is not None:
                pass
            return ()
        self._why_refused = None
        return received

    def _consume(self, received: Sequence[Any]) -> None:
        batch = _BatchInHand(received)
        with self._changed:
            self._batches.add(batch)
        try:
            # The API returns neither queue nor offset, so the context identifies a message by its index in the batch.
            messages = [replace(of_apache(theirs), queue_offset=place) for place, theirs in enumerate(received)]
            context = ConsumeContext(MessageQueue(messages[0].topic, "", 0), withdrawn=self._stopping)
            whole = [message for message in messages if not received[message.queue_offset].corrupted]
            status = self._answer(whole, context) if whole else ConsumeStatus.CONSUME_SUCCESS
        finally:
            with self._changed:
                self._batches.discard(batch)
            batch.take()
        if status is None:
            return
        for theirs, message in zip(received, messages, strict=True):
            self._end(theirs, message, status, context)

    def _answer(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus | None:
        """Calls the listener and returns its result; None if it released the messages because the consumer stops."""
        try:
            status = self._listener(messages, context)
        except MessagesWithdrawn:
            return None
        except Exception:
            ids = ", ".join(message.message_id for message in messages[:3])
            logger.warning("the listener failed on %d message(s): %s", len(messages), ids, exc_info=True)
            return ConsumeStatus.RECONSUME_LATER
        return ConsumeStatus.CONSUME_SUCCESS if status is ConsumeStatus.CONSUME_SUCCESS else ConsumeStatus.RECONSUME_LATER

    def _end(self, theirs: Any, message: MessageExt, status: ConsumeStatus, context: ConsumeContext) -> None:
        """Acknowledges the message, hides it for a pause, or moves it to the dead letters.

        If the request does not reach the broker, the message is redelivered when the time for which it is hidden ends.
        """
        place, again = message.queue_offset, message.reconsume_times
        level = context.postponed.get(place)
        level = context.delay_level_when_next_consume if level is None else level
        gives_way = place in context.given_way
        try:
            if theirs.corrupted:
                logger.error("message %s goes to the dead letters: its body is damaged", message.message_id)
                _to_dead_letters(self._client, theirs)
            elif status is ConsumeStatus.CONSUME_SUCCESS and place not in context.postponed:
                self._client.ack(theirs)
            elif level < 0 or (again >= self._max_reconsume_times and not gives_way):
                _to_dead_letters(self._client, theirs)
            else:
                self._client.change_invisible_duration(theirs, pause_before(again + 1, gives_way=gives_way))
        except Exception as error:
            logger.warning(
                "message %s will be redelivered: its acknowledgement did not reach the broker: %s",
                message.message_id,
                in_a_line(error),
            )

    def _renew_all(self) -> None:
        while not self._ended.wait(_RENEW_EVERY_S):
            with self._changed:
                batches = list(self._batches)
            for batch in batches:
                with batch.lock:
                    for theirs in batch.messages:
                        self._renew(theirs)

    def _renew(self, theirs: Any) -> None:
        handle = theirs.receipt_handle
        try:
            self._client.change_invisible_duration(theirs, _INVISIBLE_S)
        except Exception as error:
            theirs.receipt_handle = handle  # if the broker refuses, the client copies an empty handle from the response
            logger.warning("could not renew the invisible time of message %s: %s", theirs.message_id, in_a_line(error))


def _to_dead_letters(client: Any, message: Any) -> None:
    """Moves a message to the dead letters of its group. The client's simple consumer has no method for that."""
    protocol = import_module("rocketmq.grpc_protocol")
    request = protocol.ForwardMessageToDeadLetterQueueRequest(
        group=protocol.Resource(name=client.consumer_group),
        topic=protocol.Resource(name=message.topic),
        receipt_handle=message.receipt_handle,
        message_id=message.message_id,
        delivery_attempt=message.delivery_attempt or 1,
        max_delivery_attempts=message.delivery_attempt or 1,
    )
    answer = client.rpc_client.forward_message_to_dead_letter_queue_async(
        message.endpoints, request, metadata=client.sign(), timeout=client.client_configuration.request_timeout
    ).result()
    import_module("rocketmq.v5.util").MessagingResultChecker.check(answer.status)
