"""The push consumer, which calls a listener with the messages of its topics (RocketMQ's DefaultMQPushConsumer)."""

import asyncio
import logging
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeVar, Unpack

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.checks.lifecycle import Lifecycle, RunsWithin
from rocketmq_broker.client.checks.listener_check import check_message_listener
from rocketmq_broker.client.checks.settings_check import check_group, check_topic, refuse_unknown
from rocketmq_broker.client.errors import ClientError, IllegalConfiguration, NotRunning
from rocketmq_broker.client.instance.heartbeats import Heartbeats
from rocketmq_broker.client.instance.instance import ClientInstance
from rocketmq_broker.client.instance.namespace import Namespace
from rocketmq_broker.client.instance.parked_requests import ParkedRequests
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue, QueueProgress
from rocketmq_broker.client.pull.result_positions import SAVE_INTERVAL_S, ResultPositions
from rocketmq_broker.client.pull.subscription import MessageSelector, Subscription
from rocketmq_broker.client.push.consumer_parts import ConsumerParts
from rocketmq_broker.client.push.consumer_requests import ConsumerRequests
from rocketmq_broker.client.push.consumer_settings import HALF_AN_HOUR_MS, ConsumerOptions, ConsumerSettings
from rocketmq_broker.client.push.listener_call import with_namespace
from rocketmq_broker.client.push.operators.operator_requests import OperatorRequests
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, ConsumeType, HeartbeatData
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import current_world

logger = logging.getLogger(__name__)

PERSIST_INTERVAL_S = 5.0
_START_WAITS_S = 3.0
_PERSIST_AT_SHUTDOWN_S = 0.6
_LEAVING_S = 1.2

L = TypeVar("L", bound=MessageListener)


@dataclass(frozen=True, slots=True)
class _RunningPushConsumer:
    """The parts of a running push consumer."""

    instance: ClientInstance
    parts: ConsumerParts


class PushConsumer(RunsWithin):
    """Consumes a share of the queues of the subscribed topics, or all queues when broadcasting.

    Delivery is at least once: a message is acknowledged after the listener returns. After a crash, unacknowledged messages are
    delivered again, to this consumer or to another member of the group. The consumer retries while brokers are unreachable.
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
        results: ResultPositions | None = None,
        **settings: Unpack[ConsumerOptions],
    ) -> None:
        """`settings` are the fields of ConsumerSettings.

        `namesrv_addr`, `credentials`, `tls`, `rpc_hook` and `namespace` have the same meaning as for a Producer. With `results`,
        the group's offsets are first saved in the database that stores the listener's results, and then committed at the brokers.
        If that database loses results, the messages are delivered again. Raises IllegalConfiguration.
        """
        known = [field.name for field in fields(ConsumerSettings)]
        refuse_unknown(self, {name: value for name, value in settings.items() if name not in known}, known)
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        check_group("consumer", group)
        settings.setdefault("consume_timestamp_ms", current_world().wall_ms() - HALF_AN_HOUR_MS)
        self.settings = ConsumerSettings(**settings)
        self.group = group
        """The group as brokers know it, with the namespace."""
        self._new_instance = partial(
            ClientInstance, namesrv_addr=namesrv_addr, credentials=credentials, tls=tls, rpc_hook=rpc_hook
        )
        if results is not None and self.settings.is_broadcasting:
            raise IllegalConfiguration(
                f"consumer {group} is broadcasting: the parameter results requires MessageModel.CLUSTERING"
            )
        self._results = results
        self._subscriptions: dict[str, Subscription] = {}
        self._listener: MessageListener | None = None
        self._is_orderly = False
        self._lifecycle: Lifecycle[_RunningPushConsumer] = Lifecycle(f"consumer {group}")
        self._tasks = Tasks()

    def subscribe(self, topic: str, expression: MessageSelector | str = "*") -> None:
        """Subscribes to the topic's messages that match a tag expression such as `*` or `a || b`, or a MessageSelector.

        May be called from any thread while the consumer runs. In that case, a broker that does not support the filter only
        causes a log message. Raises IllegalConfiguration, and NotRunning after the shutdown.
        """
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        subscription = Subscription.parse(topic, expression, current_world().wall_ms())
        before = self._subscriptions.get(topic)
        if before is not None and before.expression != subscription.expression and not self._lifecycle.is_started:
            logger.warning(
                "consumer %s subscribes to %s twice: %r replaces %r; join several tags in one expression, as in 'a || b'",
                self.group, topic, subscription.expression, before.expression,
            )  # fmt: skip

        def change() -> None:
            self._subscriptions[topic] = subscription
            self._subscriptions_changed()

        self._lifecycle.change(change)

    def unsubscribe(self, topic: str) -> None:
        """Stops consuming the topic. Raises NotRunning after the shutdown."""
        topic = self._namespace.wrap(topic)

        def change() -> None:
            self._subscriptions.pop(topic, None)
            self._subscriptions_changed()

        self._lifecycle.change(change)

    def register_message_listener(self, listener: MessageListener, *, orderly: bool = False) -> None:
        """Sets the listener. With `orderly`, each queue is consumed in order, and a failed message blocks the next ones.

        Raises IllegalConfiguration for an invalid listener, and NotRunning after the consumer's start.
        """
        if self._lifecycle.is_started:
            raise NotRunning(f"consumer {self.group} is already started: register its listener before start()")
        check_message_listener(f"consumer {self.group}", listener)
        self._listener = listener
        self._is_orderly = orderly

    def consumes(self, topic: str, expression: MessageSelector | str = "*", *, orderly: bool = False) -> Callable[[L], L]:
        """Decorates a function, async or not, as the listener of the topic's messages, and subscribes to the topic.

        One function may have several of these decorators, one for each topic. Raises the errors of `subscribe` and
        `register_message_listener`, and IllegalConfiguration for a second function.
        """

        def register(listener: L) -> L:
            if self._listener is not None and self._listener is not listener:
                raise IllegalConfiguration(
                    f"consumer {self.group} already has a listener, {_name_of(self._listener)}: "
                    "decorate the same function for each topic, or create a consumer with another group for each function"
                )
            self.register_message_listener(listener, orderly=orderly)
            self.subscribe(topic, expression)
            return listener

        return register

    @property
    def queues(self) -> set[MessageQueue]:
        """Returns the queues that are currently assigned to this consumer."""
        return {self._namespace.unwrap_queue(queue) for queue in self._process_queues()}

    @property
    def progress(self) -> list[QueueProgress]:
        """Returns the progress of each queue that is currently assigned to this consumer."""
        progress = [one.progress for one in self._process_queues().values()]
        return [replace(one, queue=self._namespace.unwrap_queue(one.queue)) for one in progress]

    async def is_connected(self) -> bool:
        """Returns True if every broker in the consumer's routes responds to a heartbeat now.

        While all topics are unknown, returns True if any broker is registered. Raises NameServerUnreachable.
        """
        return await self._is_connected(Heartbeats.send)

    async def is_connected_to_any(self) -> bool:
        """Returns True if at least one broker in the consumer's routes responds to a heartbeat now.

        Raises NameServerUnreachable.
        """
        return await self._is_connected(Heartbeats.send_to_any)

    async def is_heard(self) -> bool:
        """Returns the result of `is_connected`. Deprecated: use `is_connected` instead."""
        warnings.warn("PushConsumer.is_heard is deprecated: use is_connected", DeprecationWarning, stacklevel=2)
        return await self.is_connected()

    async def is_heard_by_any(self) -> bool:
        """Returns the result of `is_connected_to_any`. Deprecated: use `is_connected_to_any` instead."""
        warnings.warn("PushConsumer.is_heard_by_any is deprecated: use is_connected_to_any", DeprecationWarning, stacklevel=2)
        return await self.is_connected_to_any()

    async def _is_connected(self, send: Callable[[Heartbeats], Awaitable[bool]]) -> bool:
        running = self._lifecycle.running_parts
        if running is None:
            return False
        instance = running.instance
        if instance.routes.brokers:
            return await send(instance.heartbeats)
        info = await instance.name_servers.cluster_info()
        return info is not None and bool(info.broker_addr_table)

    async def count_dead_letters(self) -> int:
        """Returns the number of this group's dead letters that have not been handled.

        For Apache's brokers, counts all dead letters of the group. Raises ClientError if a broker does not respond.
        """
        instance = self._lifecycle.running().instance
        requests = ParkedRequests(instance.calls)
        return sum(await asyncio.gather(*(requests.dead_letters(address, self.group) for address in instance.routes.masters)))

    async def start(self) -> None:
        """Starts consuming, even if brokers are unreachable.

        Raises IllegalConfiguration if there is no listener or subscription, or if a broker does not support a
        subscription's filter. After that error, the subscription can be corrected and the consumer started again.
        """
        self._lifecycle.require_new()
        if self._listener is None:
            raise IllegalConfiguration(f"consumer {self.group} has no listener: call register_message_listener first")
        if not self._subscriptions:
            raise IllegalConfiguration(f"consumer {self.group} has no subscription: call subscribe first")
        self._add_retry_topic()
        instance = self._new_instance(current_world(), membership=self._membership)
        parts = ConsumerParts(
            self.group, instance, self.settings, self._subscriptions, with_namespace(self._listener, self._namespace),
            is_orderly=self._is_orderly, results=self._results,
        )  # fmt: skip
        instance.answer(ConsumerRequests(self.group, parts.assignment, parts.rebalance, instance.routes).handlers)
        instance.answer(OperatorRequests(parts.state(), parts.direct).handlers)
        instance.routes.on_change = self._routes_changed
        for topic in self._subscriptions:
            instance.routes.watch(topic)
        instance.start()
        running = _RunningPushConsumer(instance, parts)
        self._lifecycle.started(running)
        try:
            await self._register(instance, parts)
        except IllegalConfiguration:
            await self._end(running, _LEAVING_S)
            self._lifecycle.start_failed()
            raise
        self._tasks.start("client-rebalance", parts.rebalance.run())
        self._tasks.start("client-offsets", self._persist_offsets(parts))
        logger.info("consumer %s (%s) started", self.group, instance.client_id)

    async def shutdown(self, timeout_s: float = 3.0) -> None:
        """Waits for running listeners, stores the offsets, and leaves the group, within `timeout_s`."""
        if (running := self._lifecycle.stop()) is not None:
            await self._end(running, timeout_s)

    async def _end(self, running: _RunningPushConsumer, timeout_s: float) -> None:
        """Stops the parts in an order that loses no message. Each step depends on the previous steps."""
        parts = running.parts
        await self._tasks.stop()  # no rebalance changes the queues after this
        await parts.assignment.stop_pulling()  # before the listeners, which new messages would keep busy
        parts.assignment.withdraw_all()
        parts.direct.withdraw()
        # Listeners end before the offsets are stored, so that their results count.
        await parts.consumption.stop(max(0.1, timeout_s - _LEAVING_S - _PERSIST_AT_SHUTDOWN_S))
        try:
            async with asyncio.timeout(_PERSIST_AT_SHUTDOWN_S):
                await parts.assignment.persist(confirmed=True)
        except TimeoutError:
            logger.warning("not all offsets of consumer %s were confirmed in time: messages may be delivered again", self.group)
        parts.assignment.drop_all()
        # Locks are released last, because another member may start consuming as soon as they are free.
        if parts.locks is not None:
            await parts.locks.stop()
        await running.instance.stop()
        logger.info("consumer %s stopped", self.group)

    def _add_retry_topic(self) -> None:
        if not self.settings.is_broadcasting:
            retry_topic = topics.retry_topic(self.group)
            self._subscriptions[retry_topic] = Subscription.parse(retry_topic, "*", current_world().wall_ms())

    async def _register(self, instance: ClientInstance, parts: ConsumerParts) -> None:
        """Reads the routes, checks the subscriptions and sends heartbeats, within 3 s. Raises IllegalConfiguration."""
        try:
            async with asyncio.timeout(_START_WAITS_S):
                for topic in list(self._subscriptions):
                    await instance.routes.refresh(topic)
                await parts.subscription_check.run(list(self._subscriptions.values()))
                await instance.heartbeats.send()
        except IllegalConfiguration:
            raise
        except (ClientError, TimeoutError) as error:
            logger.warning("consumer %s starts without a broker: %s; retrying", self.group, error or "no answer in time")

    def _membership(self, client_id: str) -> HeartbeatData:
        consumer = ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self.settings.message_model,
            consume_from_where=self.settings.consume_from_where,
            subscription_data_set=[subscription.to_wire() for subscription in self._subscriptions.values()],
        )
        return HeartbeatData(client_id=client_id, consumer_data_set=[consumer])

    def _process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        running = self._lifecycle.running_parts
        return running.parts.assignment.process_queues if running is not None else {}

    def _routes_changed(self) -> None:
        if (running := self._lifecycle.running_parts) is not None:
            running.instance.heartbeats.send_soon()
            running.parts.rebalance.trigger()

    def _subscriptions_changed(self) -> None:
        if (running := self._lifecycle.running_parts) is not None:
            for topic in self._subscriptions:
                running.instance.routes.watch(topic)
            running.instance.routes.refresh_soon()
            self._routes_changed()

    async def _persist_offsets(self, parts: ConsumerParts) -> None:
        while True:
            await asyncio.sleep(PERSIST_INTERVAL_S if self._results is None else SAVE_INTERVAL_S)
            await parts.assignment.persist()


def _name_of(listener: MessageListener) -> str:
    return getattr(listener, "__name__", None) or type(listener).__name__
