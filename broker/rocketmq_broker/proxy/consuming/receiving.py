"""ReceiveMessage, AckMessage and related calls, using pops (RocketMQ's ReceiveMessageActivity and AckMessageActivity)."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from google.protobuf.duration_pb2 import Duration

from rocketmq_broker.message import record
from rocketmq_broker.message.errors import BodyTooLong, CorruptRecord
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.proxy.answers import OK, CallRefused, refused
from rocketmq_broker.proxy.checks import refuse_consumer_group, refuse_topic
from rocketmq_broker.proxy.clients.client_settings import LONG_POLLING_MS, RECEIVE_BATCH_SIZE
from rocketmq_broker.proxy.clients.memberships import expression_of
from rocketmq_broker.proxy.clients.routes import TopicRoutes
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.connections.session import ClientSession
from rocketmq_broker.proxy.consuming.renewals import INVISIBLE_MS, Renewals
from rocketmq_broker.proxy.messages.stored import of_stored
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.popping import (
    MAX_ATTEMPT_ID_LENGTH,
    MAX_INVISIBLE_MS,
    HandleExpired,
    IllegalHandle,
    PoppedMessage,
    Popping,
    TooManyPops,
)  # fmt: skip
from rocketmq_broker.store import StoreUnwritable

logger = logging.getLogger(__name__)

MAX_ACKED_AT_ONCE: Final = 1024
MIN_INVISIBLE_MS: Final = 10_000
"""The minimum invisible time of ReceiveMessage, as in Apache's proxy (minInvisibleTimeMillsForRecv).

ChangeInvisibleDuration has no minimum.
"""
_BEFORE_THE_DEADLINE_MS: Final = 500
"""The minimum time in milliseconds between the answer to a call and the call's deadline."""
_NO_TOPIC_YET_S: Final = 1.0

MayConsume = Callable[[Caller, str, str], None]
"""A function that raises RequestRefused unless the caller's account may consume the topic in the group."""


@dataclass(frozen=True, slots=True)
class Receiving:
    """Delivers messages and handles their acknowledgements. All queues of a topic are treated as one, as in Apache's proxy.

    `may_consume` is None if no accounts are needed.
    """

    popping: Popping
    routes: TopicRoutes
    renewals: Renewals
    clock: Callable[[], int]
    may_consume: MayConsume | None

    async def receive(
        self, caller: Caller, session: ClientSession, request: service.ReceiveMessageRequest, hold: Callable[[int], None]
    ) -> AsyncIterator[service.ReceiveMessageResponse]:
        """Yields a status, then messages, then the delivery time. Raises CallRefused.

        `hold` is called with each change in the number of bytes that wait for the client. When the client ends the call early,
        undelivered messages become visible again immediately.
        """
        untaken = deque(await self._pop(caller, session, request))
        hold(sum(len(message.record) for message in untaken))
        try:
            status = OK if untaken else api.Status(code=api.MESSAGE_NOT_FOUND, message="no new message")
            yield service.ReceiveMessageResponse(status=status)
            while untaken:
                message = untaken[0]
                found = self._message(message)
                if found is not None:
                    yield service.ReceiveMessageResponse(message=found)
                untaken.popleft()
                hold(-len(message.record))
                if request.auto_renew:
                    self.renewals.add(session, request.group.name, message)
        finally:
            await self._show_again(request.group.name, untaken)
        answer = service.ReceiveMessageResponse()
        answer.delivery_timestamp.FromMilliseconds(self.clock())
        yield answer

    async def ack(self, caller: Caller, request: service.AckMessageRequest) -> service.AckMessageResponse:
        """Acknowledges messages. Returns a result for each message. Raises CallRefused."""
        group, topic = request.group.name, request.topic.name
        self._refuse(caller, topic, group)
        if not 0 < len(request.entries) <= MAX_ACKED_AT_ONCE:
            raise CallRefused(api.BAD_REQUEST, f"AckMessage needs 1 to {MAX_ACKED_AT_ONCE} entries, not {len(request.entries)}")
        entries = await asyncio.gather(*(self._ack(group, topic, entry) for entry in request.entries))
        codes = {entry.status.code for entry in entries}
        several = api.Status(code=api.MULTIPLE_RESULTS, message="the messages have different results")
        return service.AckMessageResponse(status=entries[0].status if len(codes) == 1 else several, entries=entries)

    async def change_invisible_duration(
        self, caller: Caller, request: service.ChangeInvisibleDurationRequest
    ) -> service.ChangeInvisibleDurationResponse:
        """Sets a message's remaining invisible time. Raises CallRefused."""
        group, topic = request.group.name, request.topic.name
        self._refuse(caller, topic, group)
        invisible_ms = _invisible_ms(request.invisible_duration, min_ms=0)
        handle = self.renewals.take(group, request.receipt_handle)
        renewed = await _of_popping(self.popping.change_invisible_time(group, topic, handle, invisible_ms))
        return service.ChangeInvisibleDurationResponse(status=OK, receipt_handle=renewed)

    async def forward_to_dead_letters(
        self, caller: Caller, request: service.ForwardMessageToDeadLetterQueueRequest
    ) -> service.ForwardMessageToDeadLetterQueueResponse:
        """Moves a message to the group's dead-letter queue. Raises CallRefused."""
        group, topic = request.group.name, request.topic.name
        self._refuse(caller, topic, group)
        await _of_popping(self.popping.to_dead_letters(group, topic, self.renewals.take(group, request.receipt_handle)))
        return service.ForwardMessageToDeadLetterQueueResponse(status=OK)

    async def _pop(self, caller: Caller, session: ClientSession, request: service.ReceiveMessageRequest) -> list[PoppedMessage]:
        group, topic = request.group.name, request.message_queue.topic.name
        self._refuse(caller, topic, group)
        poll_ms = _poll_ms(caller, session, request)
        if not self.routes.is_there(topic):
            self.routes.topic(topic)
            await asyncio.sleep(min(poll_ms / 1000, _NO_TOPIC_YET_S))
            return []
        if len(request.attempt_id) > MAX_ATTEMPT_ID_LENGTH:
            reason = f"attempt id too long: {len(request.attempt_id)} characters, at most {MAX_ATTEMPT_ID_LENGTH}"
            raise CallRefused(api.BAD_REQUEST, reason)
        hidden_ms = INVISIBLE_MS if request.auto_renew else _invisible_ms(request.invisible_duration, min_ms=MIN_INVISIBLE_MS)
        expression, kind = expression_of(request.filter_expression)
        return await _of_popping(
            self.popping.pop(
                group,
                topic,
                max_messages=min(max(request.batch_size, 1), RECEIVE_BATCH_SIZE),
                invisible_ms=hidden_ms,
                poll_ms=poll_ms,
                expression=expression,
                expression_type=kind,
                fifo=self.routes.is_fifo(topic),
                attempt_id=request.attempt_id if request.HasField("attempt_id") else None,
                owner=session,
            )
        )

    def _message(self, popped: PoppedMessage) -> api.Message | None:
        try:
            stored = record.to_message(record.decode_record(popped.record))
        except (CorruptRecord, BodyTooLong) as error:
            logger.error("a message of %s cannot be delivered and becomes a dead letter: %s", popped.topic, error)
            return None
        message = of_stored(stored, popped.topic)
        message.system_properties.receipt_handle = popped.handle
        message.system_properties.delivery_attempt = popped.attempt
        message.system_properties.invisible_duration.FromMilliseconds(popped.invisible_ms)
        return message

    async def _ack(self, group: str, topic: str, entry: service.AckMessageEntry) -> service.AckMessageResultEntry:
        result = service.AckMessageResultEntry(status=OK, message_id=entry.message_id, receipt_handle=entry.receipt_handle)
        try:
            await _of_popping(self.popping.ack(group, topic, self.renewals.take(group, entry.receipt_handle)))
        except CallRefused as refusal:
            result.status.CopyFrom(refusal.status)
        return result

    async def _show_again(self, group: str, messages: Iterable[PoppedMessage]) -> None:
        for message in messages:
            with suppress(CallRefused):
                await _of_popping(self.popping.change_invisible_time(group, message.topic, message.handle, 0))

    def _refuse(self, caller: Caller, topic: str, group: str) -> None:
        """Raises CallRefused for invalid names, and for an account without permission to consume."""
        refuse_topic(topic)
        refuse_consumer_group(group)
        if self.may_consume is None:
            return
        try:
            self.may_consume(caller, topic, group)
        except RequestRefused as error:
            raise refused(error.code, error.remark) from None


T = TypeVar("T")


async def _of_popping(work: Awaitable[T]) -> T:
    """Awaits a pop operation and returns its result. Converts its errors to CallRefused."""
    try:
        return await work
    except (IllegalHandle, HandleExpired) as error:
        # Apache's clients expose only this text, so programs look for the code's name in it.
        raise CallRefused(api.INVALID_RECEIPT_HANDLE, f"INVALID_RECEIPT_HANDLE: {error}") from None
    except TooManyPops as error:
        raise CallRefused(api.TOO_MANY_REQUESTS, str(error)) from None
    except StoreUnwritable as error:
        raise refused(ResponseCode.SERVICE_NOT_AVAILABLE, str(error)) from None
    except RequestRefused as error:
        # Names were checked before, so only an unsupported filter expression remains.
        raise refused(error.code, error.remark, api.ILLEGAL_FILTER_EXPRESSION) from None


def _poll_ms(caller: Caller, session: ClientSession, request: service.ReceiveMessageRequest) -> int:
    """Returns the time in milliseconds for which a call waits for messages.

    Clients before 5.0.4 do not send a polling time. For these clients, the result is the time until the deadline minus half of
    the client's request timeout, as in Apache's proxy.
    """
    if request.HasField("long_polling_timeout"):
        poll_ms = min(_milliseconds(request.long_polling_timeout), LONG_POLLING_MS)
        before_the_deadline_ms = _BEFORE_THE_DEADLINE_MS
    else:
        request_timeout = session.settings.request_timeout if session.settings is not None else Duration()
        poll_ms = LONG_POLLING_MS
        before_the_deadline_ms = max(_milliseconds(request_timeout) // 2, _BEFORE_THE_DEADLINE_MS)
    if caller.remaining_ms is not None:
        poll_ms = min(poll_ms, caller.remaining_ms - before_the_deadline_ms)
    return max(poll_ms, 0)


def _invisible_ms(duration: Duration, *, min_ms: int) -> int:
    invisible_ms = _milliseconds(duration)
    # The texts are Apache's, because its tests check them.
    if invisible_ms < min_ms:
        raise CallRefused(api.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too small. min is {min_ms} ms, not {invisible_ms}")
    if invisible_ms > MAX_INVISIBLE_MS:
        reason = f"the invisibleTime is too large. max is {MAX_INVISIBLE_MS} ms, not {invisible_ms}"
        raise CallRefused(api.ILLEGAL_INVISIBLE_TIME, reason)
    return invisible_ms


def _milliseconds(duration: Duration) -> int:
    return duration.seconds * 1000 + duration.nanos // 1_000_000
