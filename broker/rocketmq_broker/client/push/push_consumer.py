"""The push consumer: it calls a listener with the messages of its topics (RocketMQ's DefaultMQPushConsumer)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import TypeVar, Unpack

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.checks.lifecycle import Lifecycle
from rocketmq_broker.client.checks.listener_check import check_message_listener
from rocketmq_broker.client.checks.runs_within import RunsWithin
from rocketmq_broker.client.checks.settings_check import check_group, check_topic, refuse_unknown
from rocketmq_broker.client.errors import ClientError, IllegalConfiguration, NotRunning
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.heartbeats import Heartbeats
from rocketmq_broker.client.instance.instance import ClientInstance
from rocketmq_broker.client.instance.parked_requests import ParkedRequests
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.pull.message_selector import MessageSelector
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.queue_progress import QueueProgress
from rocketmq_broker.client.pull.result_positions import SAVE_INTERVAL_S, ResultPositions
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.client.push.consumer_parts import ConsumerParts
from rocketmq_broker.client.push.consumer_requests import ConsumerRequests
from rocketmq_broker.client.push.consumer_settings import HALF_AN_HOUR_MS, ConsumerOptions, ConsumerSettings
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
_FAREWELL_S = 1.2

L = TypeVar("L", bound=MessageListener)


@dataclass(frozen=True, slots=True)
class _RunningPushConsumer:
    """The parts of a running push consumer."""

    instance: ClientInstance
    parts: ConsumerParts


class PushConsumer(RunsWithin):
    """A consumer of its share of its topics' queues, or with broadcasting of all of them.

    Delivery is at least once: a message is acknowledged after the listener's answer; without one it comes again after a
    crash, here or at another member of the group. While brokers are away it keeps trying, and logs it once.
    """

    def __init__(
        self,
        group: str,
        *,
        namesrv_addr: str | None = None,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        rpc_hook: RpcHook | None = None,
        results: ResultPositions | None = None,
        **settings: Unpack[ConsumerOptions],
    ) -> None:
        """`settings` are those of ConsumerSettings; `namesrv_addr`, `credentials`, `tls` and `rpc_hook` those of a Producer.

        With `results` the group's offsets are saved in the database of the listener's results before the brokers get them, and if
        that database goes back in time, the messages are delivered again that it lacks. Raises IllegalConfiguration.
        """
        known = [field.name for field in fields(ConsumerSettings)]
        refuse_unknown(self, {name: value for name, value in settings.items() if name not in known}, known)
        check_group("consumer", group)
        settings.setdefault("consume_timestamp_ms", current_world().wall_ms() - HALF_AN_HOUR_MS)
        self.settings = ConsumerSettings(**settings)
        self.group = group
        self._namesrv_addr = namesrv_addr
        self._credentials = credentials
        self._tls = tls
        self._rpc_hook = rpc_hook
        if results is not None and self.settings.is_broadcasting:
            raise IllegalConfiguration(f"consumer {group} is broadcasting: it has no offsets that a database could save")
        self._results = results
        self._subscriptions: dict[str, Subscription] = {}
        self._listener: MessageListener | None = None
        self._is_orderly = False
        self._lifecycle: Lifecycle[_RunningPushConsumer] = Lifecycle(f"consumer {group}")
        self._tasks = Tasks()

    def subscribe(self, topic: str, expression: MessageSelector | str = "*") -> None:
        """Subscribes to the topic's messages with one of these tags, `*` or `a || b`, or to those of a MessageSelector.

        It may be called while running, and from any thread: then only the log names a broker that cannot filter so.
        Raises IllegalConfiguration, and NotRunning after the shutdown.
        """
        check_topic(topic)
        subscription = Subscription.parse(topic, expression, current_world().wall_ms())
        before = self._subscriptions.get(topic)
        if before is not None and before.expression != subscription.expression and not self._lifecycle.is_started:
            logger.warning(
                "consumer %s subscribes to %s twice: %r counts, and %r no longer does; several tags are one expression, 'a || b'",
                self.group, topic, subscription.expression, before.expression,
            )  # fmt: skip

        def change() -> None:
            self._subscriptions[topic] = subscription
            self._subscriptions_changed()

        self._lifecycle.change(change)

    def unsubscribe(self, topic: str) -> None:
        """Stops consuming the topic. Raises NotRunning after the shutdown."""

        def change() -> None:
            self._subscriptions.pop(topic, None)
            self._subscriptions_changed()

        self._lifecycle.change(change)

    def register_message_listener(self, listener: MessageListener, *, orderly: bool = False) -> None:
        """Sets the listener. `orderly`: each queue's messages in order, the next one after the success of this one.

        Raises IllegalConfiguration for an object that cannot be a listener, and NotRunning after the consumer's start.
        """
        if self._lifecycle.is_started:
            raise NotRunning(f"consumer {self.group} was started before: register its listener before start()")
        check_message_listener(f"consumer {self.group}", listener)
        self._listener = listener
        self._is_orderly = orderly

    def consumes(self, topic: str, expression: MessageSelector | str = "*", *, orderly: bool = False) -> Callable[[L], L]:
        """Decorates the function, async or not, that gets the topic's messages: subscribes and registers the listener.

        One function may have several such decorators, one for each topic. Raises IllegalConfiguration and NotRunning as
        `subscribe` and `register_message_listener` do, and IllegalConfiguration for a second function.
        """

        def register(listener: L) -> L:
            if self._listener is not None and self._listener is not listener:
                raise IllegalConfiguration(
                    f"consumer {self.group} has a listener already, {_name_of(self._listener)}: put both decorators above one "
                    "function, or give each function a consumer with a group of its own"
                )
            self.register_message_listener(listener, orderly=orderly)
            self.subscribe(topic, expression)
            return listener

        return register

    @property
    def queues(self) -> set[MessageQueue]:
        """Returns the queues that this consumer has now."""
        return set(self._process_queues())

    @property
    def progress(self) -> list[QueueProgress]:
        """Returns the progress of each queue that this consumer has now."""
        return [one.progress for one in self._process_queues().values()]

    async def is_heard(self) -> bool:
        """Returns whether every broker of interest answers a heartbeat; for an unknown topic, whether any broker is registered.

        Raises NameServerUnreachable.
        """
        return await self._is_heard(Heartbeats.send)

    async def is_heard_by_any(self) -> bool:
        """Returns whether at least one broker of interest answers a heartbeat now. Raises as `is_heard` does."""
        return await self._is_heard(Heartbeats.send_to_any)

    async def _is_heard(self, send: Callable[[Heartbeats], Awaitable[bool]]) -> bool:
        running = self._lifecycle.running_parts
        if running is None:
            return False
        instance = running.instance
        if instance.routes.brokers:
            return await send(instance.heartbeats)
        info = await instance.name_servers.cluster_info()
        return info is not None and bool(info.broker_addr_table)

    async def count_dead_letters(self) -> int:
        """Returns the number of this group's untreated dead letters; Apache's brokers count all of them.

        Raises a ClientError if a broker does not answer.
        """
        instance = self._lifecycle.running().instance
        requests = ParkedRequests(BrokerCalls(instance.remoting, instance.routes))
        return sum(await asyncio.gather(*(requests.dead_letters(address, self.group) for address in instance.routes.masters)))

    async def start(self) -> None:
        """Starts consuming. Brokers may be away.

        Raises IllegalConfiguration without listener or subscription, or if a broker cannot filter by a subscription:
        then mend the subscription and start again.
        """
        self._lifecycle.require_new()
        if self._listener is None:
            raise IllegalConfiguration(f"consumer {self.group} has no listener: call register_message_listener first")
        if not self._subscriptions:
            raise IllegalConfiguration(f"consumer {self.group} has no subscription: call subscribe first")
        self._add_retry_topic()
        instance = ClientInstance(
            current_world(),
            self._namesrv_addr,
            self._membership,
            credentials=self._credentials,
            tls=self._tls,
            rpc_hook=self._rpc_hook,
        )
        parts = ConsumerParts(
            self.group, instance, self.settings, self._subscriptions, self._listener,
            is_orderly=self._is_orderly, results=self._results,
        )  # fmt: skip
        instance.answer(ConsumerRequests(self.group, parts.assignment, parts.rebalance, instance.routes).handlers)
        instance.answer(OperatorRequests(parts.portrait(), parts.direct).handlers)
        instance.routes.on_change = self._routes_changed
        for topic in self._subscriptions:
            instance.routes.watch(topic)
        instance.start()
        running = _RunningPushConsumer(instance, parts)
        self._lifecycle.started(running)
        try:
            await self._be_known(instance, parts)
        except IllegalConfiguration:
            await self._end(running, _FAREWELL_S)
            self._lifecycle.start_failed()
            raise
        self._tasks.start("client-rebalance", parts.rebalance.run())
        self._tasks.start("client-offsets", self._persist_offsets(parts))
        logger.info("consumer %s (%s) started", self.group, instance.client_id)

    async def shutdown(self, timeout_s: float = 3.0) -> None:
        """Stops consuming: waits for running listeners, stores the offsets, leaves the group. Takes up to `timeout_s`."""
        if (running := self._lifecycle.stop()) is not None:
            await self._end(running, timeout_s)

    async def _end(self, running: _RunningPushConsumer, timeout_s: float) -> None:
        """Ends the parts in the one order in which nothing is lost: each step relies on the ones before."""
        parts = running.parts
        await self._tasks.stop()  # no rebalance gives up or takes queues after this
        await parts.assignment.stop_pulling()  # before listeners end: new messages would keep them busy
        parts.assignment.withdraw_all()
        parts.direct.withdraw()
        # Listeners end before the offsets are stored, so that their answers count.
        await parts.consumption.stop(max(0.1, timeout_s - _FAREWELL_S - _PERSIST_AT_SHUTDOWN_S))
        try:
            async with asyncio.timeout(_PERSIST_AT_SHUTDOWN_S):
                await parts.assignment.persist(confirmed=True)
        except TimeoutError:
            logger.warning("the offsets of consumer %s were not confirmed: the last messages may be delivered again", self.group)
        parts.assignment.drop_all()
        # Locks go just before the connections: another member may begin as soon as they are free.
        if parts.locks is not None:
            await parts.locks.stop()
        await running.instance.stop()
        logger.info("consumer %s stopped", self.group)

    def _add_retry_topic(self) -> None:
        if not self.settings.is_broadcasting:
            retry_topic = topics.retry_topic(self.group)
            self._subscriptions[retry_topic] = Subscription.parse(retry_topic, "*", current_world().wall_ms())

    async def _be_known(self, instance: ClientInstance, parts: ConsumerParts) -> None:
        """Finds the brokers and sends them a heartbeat, as far as possible at once. Raises IllegalConfiguration."""
        try:
            async with asyncio.timeout(_START_WAITS_S):
                for topic in list(self._subscriptions):
                    await instance.routes.refresh(topic)
                await parts.subscription_check.run(list(self._subscriptions.values()))
                await instance.heartbeats.send()
        except IllegalConfiguration:
            raise
        except (ClientError, TimeoutError) as error:
            logger.warning("consumer %s starts without a broker: %s; it keeps trying", self.group, error or "no answer in time")

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
