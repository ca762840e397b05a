"""The producer (RocketMQ's DefaultMQProducer)."""

import asyncio
import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Never

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.checks.argument_check import check_target
from rocketmq_broker.client.checks.lifecycle import Lifecycle, RunsWithin
from rocketmq_broker.client.checks.settings_check import check_group, check_topic, check_whole_number, refuse_unknown
from rocketmq_broker.client.errors import NoRoute
from rocketmq_broker.client.instance.instance import ClientInstance, RequestHandlers
from rocketmq_broker.client.instance.namespace import Namespace
from rocketmq_broker.client.instance.routes import DEFAULT_TOPIC_QUEUE_NUMS
from rocketmq_broker.client.producer.message_sender import MessageSender, SendRequests, SendSettings
from rocketmq_broker.client.producer.replies import PendingReplies
from rocketmq_broker.client.producer.send_result import SendResult
from rocketmq_broker.client.producer.sendability import Sendability
from rocketmq_broker.client.producer.wire_message import check_message
from rocketmq_broker.message import Message, MessageExt, MessageQueue, topics
from rocketmq_broker.message.ids import UniqueIdMaker
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import current_world

logger = logging.getLogger(__name__)

_TOPIC_APPEARS_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class RunningProducer:
    """The parts of a running producer."""

    instance: ClientInstance
    requests: SendRequests
    sender: MessageSender


class Producer(RunsWithin):
    """Sends messages. A producer can start before any broker does.

    A ClientError states why a message could not be sent.

        async with Producer("order-producers") as producer:
            await producer.send(Message.of("orders", "order 1 is paid", keys=["order-1"]))
    """

    def __init__(
        self,
        group: str,
        *,
        namesrv_addr: str | None = None,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        rpc_hook: RpcHook | None = None,
        namespace: str | None = None,
        send_timeout_ms: int = 3000,
        retry_times_when_send_failed: int = 2,
        compress_message_body_over: int = 4096,
        default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS,
        **unknown: Never,
    ) -> None:
        """`namesrv_addr` is `host:port;host:port`. The default is the variable NAMESRV_ADDR, or else 127.0.0.1:9876.

        `credentials` sign each request. By default they are read from ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY, if set. `tls`
        enables TLS; True uses the system's certificates. By default, TLS is enabled if ROCKETMQ_TLS_ENABLE is true. `rpc_hook` is
        called with each request and response. An exception raised by the hook stops that request or response. `namespace` is put
        before the group and each topic, and removed from received topics, as in Apache's 4.x clients. Raises
        IllegalConfiguration for an invalid group name, an unknown setting, or a setting of the wrong type or range.
        """
        refuse_unknown(self, unknown)
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        check_group("producer", group)
        check_whole_number("send_timeout_ms", send_timeout_ms, minimum=1)
        check_whole_number("retry_times_when_send_failed", retry_times_when_send_failed, minimum=0)
        check_whole_number("compress_message_body_over", compress_message_body_over, minimum=0)
        check_whole_number("default_topic_queue_nums", default_topic_queue_nums, minimum=1)
        self.group = group
        """The group as brokers know it, with the namespace."""
        self._new_instance = partial(
            ClientInstance,
            namesrv_addr=namesrv_addr,
            credentials=credentials,
            tls=tls,
            rpc_hook=rpc_hook,
            queues_of_new_topics=default_topic_queue_nums,
        )
        self._settings = SendSettings(
            timeout_ms=send_timeout_ms, retry_times=retry_times_when_send_failed, compress_over=compress_message_body_over
        )
        self._replies = PendingReplies(current_world().nonce)
        self._is_registered = False
        self._lifecycle: Lifecycle[RunningProducer] = Lifecycle(f"producer {group}")

    async def start(self) -> None:
        """Starts the producer, which registers with each broker once that broker can be reached."""
        self._lifecycle.require_new()
        world = current_world()
        instance = self._new_instance(world, membership=self._membership)
        requests = SendRequests(instance.calls)
        ids = UniqueIdMaker(world, instance.client_ip)
        sender = MessageSender(self.group, requests, instance.routes, ids, self._settings, world, self._namespace)
        instance.answer(self._handlers())
        instance.routes.on_change = instance.heartbeats.send_soon
        instance.routes.watch(topics.AUTO_CREATE_TOPIC)  # all brokers that create topics have it, so its route lists them
        instance.start()
        self._lifecycle.started(RunningProducer(instance, requests, sender))
        logger.info("producer %s (%s) started", self.group, instance.client_id)

    async def shutdown(self) -> None:
        """Shuts the producer down and unregisters it from the brokers. Later sends raise NotRunning."""
        if (running := self._lifecycle.stop()) is not None:
            await self._stop(running)

    async def _stop(self, running: RunningProducer) -> None:
        """Stops the running parts. Called once, after the last send."""
        await running.instance.stop()
        logger.info("producer %s stopped", self.group)

    async def send(self, message: Message, queue: MessageQueue | None = None, *, timeout_ms: int | None = None) -> SendResult:
        """Sends the message, and returns once the broker has stored it. Tries other brokers unless `queue` is given.

        Raises MessageRefused, NoRoute or NameServerUnreachable, BrokerError if a broker refuses the message, and SendFailed
        if no broker can be reached. After SendFailed, the message may nevertheless be stored.
        """
        return await self._lifecycle.running().sender.send(message, queue, timeout_ms=timeout_ms)

    async def request(self, message: Message, queue: MessageQueue | None = None, *, timeout_ms: int | None = None) -> MessageExt:
        """Sends a request message, and returns the consumer's reply.

        `timeout_ms` limits the send and the wait together (default: send_timeout_ms). Raises the same errors as `send`, and
        RequestTimedOut if no reply arrives in time; the request may have been consumed.
        """
        running = self._lifecycle.running()
        check_message(message)
        check_target(queue, timeout_ms)
        loop = asyncio.get_running_loop()
        timeout_ms = self._settings.timeout_ms if timeout_ms is None else timeout_ms
        end_s = loop.time() + timeout_ms / 1000
        correlation_id, request = self._replies.begin(message, running.instance.client_id, timeout_ms)
        try:
            await self._register(running, timeout_ms)
            await running.sender.send(request, queue, timeout_ms=timeout_ms)
            return await self._replies.reply(correlation_id, message.topic, max(1, int((end_s - loop.time()) * 1000)))
        finally:
            self._replies.end(correlation_id)

    async def _register(self, running: RunningProducer, timeout_ms: int) -> None:
        """Registers this producer with the brokers, which deliver the replies."""
        if not self._is_registered:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):
                    self._is_registered = await running.instance.heartbeats.send()

    async def send_oneway(self, message: Message, queue: MessageQueue | None = None) -> None:
        """Sends the message one-way, without confirmation. Raises a ClientError only if the message cannot be sent."""
        await self._lifecycle.running().sender.send_oneway(message, queue)

    async def send_batch(
        self, messages: Sequence[Message], queue: MessageQueue | None = None, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Sends messages of one topic in one request. Either all are stored, one after another, or none.

        Raises the same errors as `send`.
        """
        return await self._lifecycle.running().sender.send_batch(messages, queue, timeout_ms=timeout_ms)

    async def is_connected(self) -> bool:
        """Returns True if every broker in the producer's routes responds to a heartbeat now.

        The brokers then accept messages and can send check-backs.
        """
        return await self._lifecycle.running().instance.heartbeats.send()

    async def is_heard(self) -> bool:
        """Returns the result of `is_connected`. Deprecated: use `is_connected` instead."""
        warnings.warn("Producer.is_heard is deprecated: use is_connected", DeprecationWarning, stacklevel=2)
        return await self.is_connected()

    async def why_unsendable(self, topic: str) -> str | None:
        """Returns the reason why no broker would store a message to the topic now, or None if at least one broker would.

        Stores no message. Returns None if a message was stored within the last second, and the reason if the last three
        messages were refused. Otherwise requests the state of each broker of the topic, with a timeout of 1 s. Apache's brokers
        support this request.
        """
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        return await self._sendability().why_unsendable(topic)

    async def refusing_brokers(self, topic: str) -> list[str]:
        """Returns one reason for each broker of the topic that would not store a message now.

        Requests the state of each broker, with a timeout of 1 s. Raises NoRoute or NameServerUnreachable.
        """
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        return await self._sendability().refusing_brokers(topic)

    def _sendability(self) -> Sendability:
        running = self._lifecycle.running()
        return Sendability(running.instance.calls, running.sender.latest)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Returns the queues for sending to the topic. Raises NoRoute or NameServerUnreachable."""
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        queues = await self._lifecycle.running().instance.routes.queues_to_publish(topic)
        return [self._namespace.unwrap_queue(queue) for queue in queues]

    async def create_topic(self, topic: str, queue_count: int = 4) -> None:
        """Creates the topic on every broker, or changes its number of queues. Returns once the topic accepts messages."""
        running = self._lifecycle.running()
        instance = running.instance
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        check_whole_number("queue_count", queue_count, minimum=1)
        info = await instance.name_servers.cluster_info()
        masters = [] if info is None else [broker.master_address for broker in info.broker_addr_table.values()]
        addresses = [address for address in masters if address]
        if not addresses:
            raise NoRoute(f"no broker is registered at {instance.routes.namesrv_addr}: start a broker")
        await asyncio.gather(*(running.requests.create_topic(address, topic, queue_count) for address in addresses))
        await self._until_known(instance, topic)

    async def _until_known(self, instance: ClientInstance, topic: str) -> None:
        """Waits until the brokers have registered the new topic with the name servers."""
        try:
            async with asyncio.timeout(_TOPIC_APPEARS_WITHIN_S):
                while not await instance.routes.refresh(topic):  # noqa: ASYNC110 (no event)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise NoRoute(f"topic {topic} was created but is not yet registered at a name server: try again") from None

    def _membership(self, client_id: str) -> HeartbeatData:
        return HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=self.group)])

    def _handlers(self) -> RequestHandlers:
        """Returns the handlers for brokers' requests to this producer, keyed by request code."""
        return self._replies.handlers
