"""Sends a message: queue selection, retries and timeout (RocketMQ's DefaultMQProducerImpl.sendDefaultImpl)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rocketmq_broker.client.checks.argument_check import check_batch, check_target
from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, ClientError, NameServerUnreachable, SendFailed
from rocketmq_broker.client.instance.broker_calls import TIMEOUT_MS, BrokerCalls
from rocketmq_broker.client.instance.calls import ask_for_success, understood
from rocketmq_broker.client.instance.namespace import NO_NAMESPACE, Namespace
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.producer.queue_selection import QueueSelector
from rocketmq_broker.client.producer.send_result import SendResult, SendStatus
from rocketmq_broker.client.producer.sendability import LatestSends
from rocketmq_broker.client.producer.wire_message import (
    COMPRESS_BODY_OVER,
    WireMessage,
    check_message,
    to_wire,
    to_wire_batch,
    with_unique_id,
)
from rocketmq_broker.message import Message, MessageQueue, topics
from rocketmq_broker.message.ids import UniqueIdMaker
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.world import World

_STORED: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class SendRequests:
    """The requests of a producer.

    Each request may raise BrokerUnreachable or RequestTimedOut. Requests that expect a response may also raise BrokerError.
    """

    def __init__(self, calls: BrokerCalls) -> None:
        """`calls` sends the requests."""
        self._calls = calls

    @understood
    async def send_message(
        self, group: str, message: WireMessage, queue: MessageQueue, *, born_ms: int, timeout_ms: int
    ) -> SendResult:
        """Sends the message to the queue. Returns once the broker has stored it."""
        address = await self._calls.routes.address_of(queue.broker_name)
        header = self._header(group, message, queue, born_ms)
        answer = await self._calls.ask_at(address, _send_code(message), header, message.body, timeout_ms=timeout_ms)
        status = _STORED.get(answer.code)
        if status is None:
            raise BrokerError(answer.code, answer.remark, address)
        stored = answer.decode_header(SendMessageResponseHeader)
        return SendResult(
            send_status=status,
            message_id=message.unique_id,
            offset_message_id=stored.msg_id,
            queue=MessageQueue(message.topic, queue.broker_name, stored.queue_id),
            queue_offset=stored.queue_offset,
            transaction_id=stored.transaction_id,
        )

    async def send_message_oneway(self, group: str, message: WireMessage, queue: MessageQueue, *, born_ms: int) -> None:
        """Sends the message to the queue one-way, without a response."""
        header = self._header(group, message, queue, born_ms)
        await self._calls.send_oneway_to_master(queue.broker_name, _send_code(message), header, message.body)

    async def end_transaction(self, broker_name: str, header: EndTransactionRequestHeader, failure: str | None = None) -> None:
        """Sends the decision to the broker one-way. `failure` is the listener's error, if any."""
        await self._calls.send_oneway_to_master(broker_name, RequestCode.END_TRANSACTION, header, remark=failure)

    async def create_topic(self, address: str, topic: str, queue_count: int) -> None:
        """Creates the topic on the broker at `address`, or changes its number of queues."""
        code, header = RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicRequestHeader.of(topic, queue_count)
        await ask_for_success(self._calls.remoting, address, code, header, timeout_ms=TIMEOUT_MS)

    def _header(self, group: str, message: WireMessage, queue: MessageQueue, born_ms: int) -> SendMessageRequestHeaderV2:
        return SendMessageRequestHeaderV2(
            producer_group=group,
            topic=message.topic,
            default_topic=topics.AUTO_CREATE_TOPIC,
            default_topic_queue_nums=self._calls.routes.queues_of_new_topics,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=born_ms,
            flag=message.flag,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            max_reconsume_times=message.max_reconsume_times,
            batch=message.is_batch,
            broker_name=queue.broker_name,
        )


def _send_code(message: WireMessage) -> RequestCode:
    if message.is_reply:
        return RequestCode.SEND_REPLY_MESSAGE_V2
    return RequestCode.SEND_BATCH_MESSAGE if message.is_batch else RequestCode.SEND_MESSAGE_V2


_RETRYABLE = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
    }
)
_FIRST_PAUSE_S = 0.1
_STORED_LESS_SAFELY = {
    SendStatus.FLUSH_DISK_TIMEOUT: "does not flush messages to disk in time",
    SendStatus.FLUSH_SLAVE_TIMEOUT: "does not replicate messages to a slave in time",
    SendStatus.SLAVE_NOT_AVAILABLE: "has no slave that keeps up with it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSettings:
    """The settings of a producer's sends."""

    timeout_ms: int = 3000
    """The timeout of a whole send in milliseconds: reading the route, all attempts, and the pauses between attempts."""
    retry_times: int = 2
    """The number of retries after the first attempt."""
    compress_over: int = COMPRESS_BODY_OVER
    """The size in bytes above which a body is compressed (zlib)."""


class MessageSender:
    """Sends the messages of one producer group."""

    def __init__(
        self,
        group: str,
        requests: SendRequests,
        routes: Routes,
        ids: UniqueIdMaker,
        settings: SendSettings,
        world: World,
        namespace: Namespace = NO_NAMESPACE,
    ) -> None:
        """`ids` generates the message ids. `namespace` is put before the topics of messages."""
        self._group = group
        self._requests = requests
        self._routes = routes
        self._ids = ids
        self._settings = settings
        self._namespace = namespace
        self._selector = QueueSelector(world.random.randrange(1 << 16))
        self._now_ms = world.wall_ms
        self.latest = LatestSends()

    async def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        timeout_ms: int | None = None,
        new_id_each_attempt: bool = False,
    ) -> SendResult:
        """Sends the message, and returns once the broker has stored it. Tries other brokers unless `queue` is given.

        `new_id_each_attempt` gives each attempt its own message id. Use it if only one attempt may take effect. Each
        attempt then waits for at most half of the remaining time, unless every other broker has been tried. Without it,
        an attempt waits for all of the remaining time, as in Apache's client, because a second attempt could store a
        duplicate. A broker that stores such a message less safely than configured is avoided like one that failed, because
        the message, a half message, is of no use then.

        Raises MessageRefused, NoRoute or NameServerUnreachable, BrokerError if a broker refuses the message, and
        SendFailed if no broker can be reached.
        """
        message = self._namespace.wrap_message(message)
        check_message(message)
        check_target(queue, timeout_ms)

        def ready() -> WireMessage:
            identified = with_unique_id(message, self._ids.make(self._now_ms()), replace=new_id_each_attempt)
            return to_wire(identified, compress_over=self._settings.compress_over)

        deadline = _Deadline(self._settings.timeout_ms if timeout_ms is None else timeout_ms, shares=new_id_each_attempt)
        return await self._send(deadline, message.topic, ready if new_id_each_attempt else _always(ready()), queue)

    async def send_batch(
        self, messages: Sequence[Message], queue: MessageQueue | None = None, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Sends messages of one topic in one request. Either all are stored or none. Raises the same errors as `send`."""
        check_target(queue, timeout_ms)
        batch = self._ready_batch(messages)
        deadline = _Deadline(self._settings.timeout_ms if timeout_ms is None else timeout_ms)
        return await self._send(deadline, batch.topic, _always(batch), queue)

    async def send_oneway(self, message: Message, queue: MessageQueue | None = None) -> None:
        """Sends the message one-way, without a response.

        Raises MessageRefused, NoRoute or NameServerUnreachable, and BrokerUnreachable if the message cannot be sent.
        """
        message = self._namespace.wrap_message(message)
        check_message(message)
        check_target(queue, None)
        wire = to_wire(with_unique_id(message, self._ids.make(self._now_ms())), compress_over=self._settings.compress_over)
        queues = [queue] if queue else await self._queues(message.topic, _Deadline(self._settings.timeout_ms))
        target = self._selector.select(queues, self._now_ms())
        await self._requests.send_message_oneway(self._group, wire, target, born_ms=self._now_ms())

    async def _send(
        self, deadline: "_Deadline", topic: str, ready: Callable[[], WireMessage], queue: MessageQueue | None
    ) -> SendResult:
        try:
            result = await self._send_by(deadline, topic, ready, queue)
        except BrokerError as error:
            if error.code != ResponseCode.MESSAGE_ILLEGAL:
                self.latest.failed(str(error), _now_s())
            raise
        self._note(result.queue.broker_name, result.send_status, is_half_message=deadline.shares)
        queue = self._namespace.unwrap_queue(result.queue)
        return result if queue is result.queue else replace(result, queue=queue)

    def _note(self, broker_name: str, status: SendStatus, *, is_half_message: bool) -> None:
        is_useless = is_half_message and status is not SendStatus.SEND_OK
        if is_useless:
            self._selector.broker_failed(broker_name, self._now_ms())
        if is_useless or status is SendStatus.FLUSH_DISK_TIMEOUT:
            self.latest.failed(f"broker {broker_name} {_STORED_LESS_SAFELY[status]}", _now_s())
        else:
            self.latest.stored(_now_s())

    async def _send_by(
        self, deadline: "_Deadline", topic: str, ready: Callable[[], WireMessage], queue: MessageQueue | None
    ) -> SendResult:
        queues = [queue] if queue else await self._queues(topic, deadline)
        attempts = 1 if queue else 1 + self._settings.retry_times
        failed: list[str] = []
        for attempt in range(attempts):
            target = self._selector.select(queues, self._now_ms(), failed)
            untried = {candidate.broker_name for candidate in queues} - {*failed, target.broker_name}
            timeout_ms = deadline.attempt_ms(is_last=attempt + 1 == attempts or not untried)
            try:
                result = await self._requests.send_message(
                    self._group, ready(), target, born_ms=self._now_ms(), timeout_ms=timeout_ms
                )
            except (BrokerUnreachable, BrokerError) as error:
                failure: ClientError = error
                if isinstance(error, BrokerError) and error.code not in _RETRYABLE:
                    raise
            else:
                self._selector.broker_answered(target.broker_name)
                return result
            failed.append(target.broker_name)
            self._selector.broker_failed(target.broker_name, self._now_ms())
            self._routes.refresh_soon()
            only_failed_ones_left = {candidate.broker_name for candidate in queues} <= set(failed)
            pause_s = _FIRST_PAUSE_S * 2**attempt if only_failed_ones_left else 0
            if attempt + 1 == attempts or not deadline.allows(pause_s):
                break
            await asyncio.sleep(pause_s)
        if isinstance(failure, BrokerError):
            raise failure
        raise SendFailed(f"message to topic {topic} could not be sent (tried {', '.join(failed)}): {failure}") from failure

    async def _queues(self, topic: str, deadline: "_Deadline") -> list[MessageQueue]:
        try:
            async with asyncio.timeout(deadline.remaining_ms() / 1000):
                return await self._routes.queues_to_publish(topic)
        except TimeoutError:
            raise NameServerUnreachable(
                f"no name server returned the route of topic {topic} in time: "
                f"check that {self._routes.namesrv_addr} is the address of a name server"
            ) from None

    def _ready_batch(self, messages: Sequence[Message]) -> WireMessage:
        check_batch(messages)
        messages = [self._namespace.wrap_message(message) for message in messages]
        for message in messages:
            check_message(message)
        return to_wire_batch([with_unique_id(message, self._ids.make(self._now_ms())) for message in messages])


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class _Deadline:
    def __init__(self, timeout_ms: int, *, shares: bool = False) -> None:
        """`shares` limits an attempt to half of the remaining time. The other half is left for the next attempt."""
        self.shares = shares
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + timeout_ms / 1000

    def remaining_ms(self) -> int:
        return max(1, int((self._end - self._loop.time()) * 1000))

    def attempt_ms(self, *, is_last: bool) -> int:
        remaining_ms = self.remaining_ms()
        return remaining_ms if is_last or not self.shares else max(1, remaining_ms // 2)

    def allows(self, pause_s: float) -> bool:
        return self._loop.time() + pause_s < self._end


def _always(wire: WireMessage) -> Callable[[], WireMessage]:
    return lambda: wire
