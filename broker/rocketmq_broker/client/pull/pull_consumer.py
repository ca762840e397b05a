"""The pull consumer, for programs that request messages (RocketMQ's DefaultLitePullConsumer, DefaultMQPullConsumer)."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Never

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.checks.argument_check import check_number, check_queue, check_queues
from rocketmq_broker.client.checks.lifecycle import Lifecycle, RunsWithin
from rocketmq_broker.client.checks.settings_check import (
    check_group,
    check_member,
    check_topic,
    check_whole_number,
    refuse_unknown,
)
from rocketmq_broker.client.errors import IllegalConfiguration, NoRoute
from rocketmq_broker.client.instance.instance import ClientInstance
from rocketmq_broker.client.instance.namespace import Namespace
from rocketmq_broker.client.pull.pull_loop import PullSettings
from rocketmq_broker.client.pull.queue_requests import PullAnswer, QueueRequests
from rocketmq_broker.client.pull.read_ahead import ReadAhead
from rocketmq_broker.client.pull.starting_offset import StartingOffset
from rocketmq_broker.client.pull.subscription import MessageSelector, Subscription
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumerData, ConsumeType, HeartbeatData
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import current_world


@dataclass(frozen=True, slots=True)
class _RunningPullConsumer:
    """The parts of a running pull consumer."""

    instance: ClientInstance
    requests: QueueRequests
    read_ahead: ReadAhead


class PullConsumer(RunsWithin):
    """Consumes queues that the program assigns, from offsets that it chooses, and commits offsets on request.

    `poll` returns messages that are read ahead in the background. `pull` sends one request for messages from an offset.

        async with PullConsumer("auditors") as consumer:
            consumer.assign(await consumer.queues("orders"))
            messages = await consumer.poll()
            await consumer.commit()
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
        consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_timestamp_ms: int = 0,
        pull_batch_size: int = 32,
        pull_threshold_for_queue: int = 1000,
        **unknown: Never,
    ) -> None:
        """`consume_from_where` is the start position in queues in which the group has no offset.

        Raises IllegalConfiguration if a setting is invalid.

        `namesrv_addr`, `credentials`, `tls`, `rpc_hook` and `namespace` have the same meaning as for a Producer.
        """
        refuse_unknown(self, unknown)
        self._namespace = Namespace(namespace)
        group = self._namespace.wrap(group)
        check_group("consumer", group)
        check_member("consume_from_where", consume_from_where, ConsumeFromWhere)
        check_whole_number("consume_timestamp_ms", consume_timestamp_ms, minimum=0)
        check_whole_number("pull_batch_size", pull_batch_size, minimum=1, maximum=1024)
        check_whole_number("pull_threshold_for_queue", pull_threshold_for_queue, minimum=1, maximum=65535)
        self.group = group
        """The group as brokers know it, with the namespace."""
        self._new_instance = partial(
            ClientInstance, namesrv_addr=namesrv_addr, credentials=credentials, tls=tls, rpc_hook=rpc_hook
        )
        self._start_at = StartingOffset(consume_from_where, consume_timestamp_ms)
        self._settings = PullSettings(
            batch_size=pull_batch_size,
            max_count=pull_threshold_for_queue,
            max_span=None,
            sends_expression=True,
            commits_offset=False,
        )
        self._lifecycle: Lifecycle[_RunningPullConsumer] = Lifecycle(f"consumer {group}")
        self._is_assigned = False

    async def start(self) -> None:
        """Starts the consumer. Brokers may be unreachable."""
        self._lifecycle.require_new()
        world = current_world()
        instance = self._new_instance(world, membership=self._membership)
        requests = QueueRequests(instance.calls)
        instance.routes.on_change = instance.heartbeats.send_soon
        instance.start()
        read_ahead = ReadAhead(self.group, requests, self._start_at, self._settings, world)
        self._lifecycle.started(_RunningPullConsumer(instance, requests, read_ahead))

    async def shutdown(self) -> None:
        """Shuts the consumer down. Messages that were not committed are delivered again."""
        if (running := self._lifecycle.stop()) is not None:
            await running.read_ahead.stop()
            await running.instance.stop()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Returns the readable queues of the topic. Raises NoRoute or NameServerUnreachable."""
        topic = self._namespace.wrap(topic)
        check_topic(topic)
        routes = self._lifecycle.running().instance.routes
        await routes.refresh(topic)
        queues = routes.queues_to_subscribe(topic)
        if not queues:
            raise NoRoute(f"no broker has a readable queue of topic {topic}: check its permission and readQueueNums")
        return [self._namespace.unwrap_queue(queue) for queue in queues]

    def assign(self, queues: Iterable[MessageQueue], expression: MessageSelector | str = "*") -> None:
        """Sets the queues that `poll` reads, each from the group's offset. `expression` filters the messages."""
        running = self._lifecycle.running()
        check_queues(queues)
        wanted = {self._known(queue) for queue in queues}
        self._is_assigned = True
        for queue in running.read_ahead.queues - wanted:
            running.read_ahead.give_up(queue)
        for queue in wanted - running.read_ahead.queues:
            running.instance.routes.watch(queue.topic)
            running.read_ahead.read(queue, Subscription.parse(queue.topic, expression, running.instance.world.wall_ms()))
        running.instance.heartbeats.send_soon()

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Sets the offset at which `poll` continues in a queue. Raises IllegalConfiguration if the queue is not assigned."""
        read_ahead = self._lifecycle.running().read_ahead
        queue = self._known(queue)
        check_number("offset", offset, minimum=0)
        if queue not in read_ahead.queues:
            raise IllegalConfiguration(f"{queue} is not assigned: call assign([queue]) first")
        read_ahead.seek(queue, offset)

    async def poll(self, timeout_ms: int = 5000, *, max_messages: int = 32) -> list[MessageExt]:
        """Returns the next messages, in order within each queue. The list is empty if none arrived within `timeout_ms`.

        Raises IllegalConfiguration before the first `assign`.
        """
        read_ahead = self._lifecycle.running().read_ahead
        check_number("timeout_ms", timeout_ms, minimum=0)
        check_number("max_messages", max_messages, minimum=1)
        if not self._is_assigned:
            raise IllegalConfiguration(f"consumer {self.group} has no queues: call assign(await consumer.queues(topic)) first")
        now_s = asyncio.get_running_loop().time
        deadline_s = now_s() + timeout_ms / 1000
        while not (messages := read_ahead.take(max_messages)):
            if not await read_ahead.wait(deadline_s - now_s()):
                return []
            self._lifecycle.running()  # raises NotRunning after a shutdown, which also ends the wait
        return self._namespace.unwrap_messages(messages)

    async def commit(self) -> None:
        """Commits the offsets of the messages that `poll` has returned, and waits for the brokers. Raises ClientError."""
        running = self._lifecycle.running()
        await running.requests.commit_offsets(self.group, running.read_ahead.committable_offsets)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        expression: MessageSelector | str = "*",
        max_messages: int = 32,
        suspend_ms: int = 0,
    ) -> PullAnswer:
        """Pulls messages at and after `offset`. The broker waits up to `suspend_ms` for a message. Raises ClientError."""
        queue = self._known(queue)
        check_number("offset", offset, minimum=0)
        check_number("max_messages", max_messages, minimum=1)
        subscription = Subscription.parse(queue.topic, expression, self._lifecycle.running().instance.world.wall_ms())
        requests = await self._requests_about(queue)
        answer = await requests.pull(
            self.group,
            queue,
            offset,
            subscription=subscription,
            max_messages=max_messages,
            sends_expression=True,
            suspend_ms=suspend_ms,
        )
        return answer._replace(messages=self._namespace.unwrap_messages(answer.messages))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the group's offset in the queue; None if the broker has none. Raises ClientError."""
        queue = self._known(queue)
        requests = await self._requests_about(queue)
        return await requests.committed_offset(self.group, queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of the queue's oldest message. Raises ClientError."""
        queue = self._known(queue)
        requests = await self._requests_about(queue)
        return await requests.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of the queue's next message. Raises ClientError."""
        queue = self._known(queue)
        requests = await self._requests_about(queue)
        return await requests.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the queue's first message stored at or after a time. Raises ClientError."""
        queue = self._known(queue)
        check_number("timestamp_ms", timestamp_ms, minimum=0)
        requests = await self._requests_about(queue)
        return await requests.search_offset(queue, timestamp_ms)

    async def _requests_about(self, queue: MessageQueue) -> QueueRequests:
        """Returns the request sender, after reading the route of the queue's topic if it is unknown."""
        running = self._lifecycle.running()
        await running.instance.routes.refresh_if_unknown(queue.topic)
        return running.requests

    def _known(self, queue: MessageQueue) -> MessageQueue:
        """Returns the queue with the namespace added to its topic. Raises TypeError unless it is a MessageQueue."""
        check_queue(queue)
        return self._namespace.wrap_queue(queue)

    def _membership(self, client_id: str) -> HeartbeatData:
        running = self._lifecycle.running_parts
        consumer = ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            consume_from_where=self._start_at.from_where,
            subscription_data_set=[each.to_wire() for each in running.read_ahead.subscriptions] if running is not None else [],
        )
        return HeartbeatData(client_id=client_id, consumer_data_set=[consumer])
