"""The consumer for programs that ask for messages themselves (RocketMQ's DefaultLitePullConsumer and DefaultMQPullConsumer)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Never

from broker.acl import SessionCredentials
from broker.client.checks.argument_check import check_number, check_queue, check_queues
from broker.client.checks.lifecycle import Lifecycle
from broker.client.checks.settings_check import check_group, check_member, check_topic, check_whole_number, refuse_unknown
from broker.client.errors import ClientError, IllegalConfiguration, NoRoute
from broker.client.instance.broker_calls import BrokerCalls
from broker.client.instance.clock import now_ms
from broker.client.instance.instance import ClientInstance
from broker.client.pull.message_selector import MessageSelector
from broker.client.pull.offset_store import BrokerOffsetStore
from broker.client.pull.process_queue import ProcessQueue
from broker.client.pull.pull_loop import PullEvents, PullLoop, PullSettings
from broker.client.pull.queue_requests import Pulled, QueueRequests
from broker.client.pull.starting_offset import StartingOffset
from broker.client.pull.subscription import Subscription
from broker.message import MessageExt, MessageQueue
from broker.protocol.errors import ProtocolError
from broker.protocol.heartbeat import ConsumeFromWhere, ConsumerData, ConsumeType, HeartbeatData
from broker.remoting.backoff import Backoff
from broker.remoting.tasks import Tasks
from broker.remoting.tls import ClientTls

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Assigned:
    """A queue that `poll` reads."""

    subscription: Subscription
    start: int | None
    """Where to begin; None: where the group has come to."""
    process_queue: ProcessQueue | None = None
    task: asyncio.Task[None] | None = None

    def drop(self) -> None:
        if self.process_queue is not None:
            self.process_queue.drop()
        if self.task is not None:
            self.task.cancel()


class PullConsumer:
    """Reads the queues that the program assigns, from where it says, and commits when it says so.

    `poll` reads ahead in the background; `pull` asks once for messages from an offset and remembers nothing.
    """

    def __init__(
        self,
        group: str,
        *,
        namesrv_addr: str | None = None,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_timestamp_ms: int = 0,
        pull_batch_size: int = 32,
        pull_threshold_for_queue: int = 1000,
        **unknown: Never,
    ) -> None:
        """`consume_from_where` holds for queues in which the group has no offset yet. Raises IllegalConfiguration.

        `namesrv_addr`, `credentials` and `tls` are those of a Producer.
        """
        refuse_unknown(self, unknown)
        check_group("consumer", group)
        check_member("consume_from_where", consume_from_where, ConsumeFromWhere)
        check_whole_number("consume_timestamp_ms", consume_timestamp_ms, least=0)
        check_whole_number("pull_batch_size", pull_batch_size, least=1, most=1024)
        check_whole_number("pull_threshold_for_queue", pull_threshold_for_queue, least=1, most=65535)
        self.group = group
        self._namesrv_addr = namesrv_addr
        self._credentials = credentials
        self._tls = tls
        self._start_at = StartingOffset(consume_from_where, consume_timestamp_ms)
        self._settings = PullSettings(
            batch_size=pull_batch_size,
            max_count=pull_threshold_for_queue,
            max_span=None,
            sends_expression=True,
            commits_offset=False,
        )
        self._lifecycle = Lifecycle(f"consumer {group}")
        self._instance: ClientInstance | None = None
        self._requests: QueueRequests | None = None
        self._store: BrokerOffsetStore | None = None
        self._assigned: dict[MessageQueue, _Assigned] = {}
        self._is_assigned = False
        self._arrived: deque[tuple[ProcessQueue, MessageExt]] = deque()
        self._has_arrived = asyncio.Event()
        self._tasks = Tasks()

    async def start(self) -> None:
        """Begin. It is no error if no broker is up."""
        self._lifecycle.require_new()
        instance = self._instance = ClientInstance(
            self._namesrv_addr, self._membership, credentials=self._credentials, tls=self._tls
        )
        self._requests = QueueRequests(BrokerCalls(instance.remoting, instance.routes))
        self._store = BrokerOffsetStore(self.group, self._requests)
        instance.routes.on_change = instance.heartbeats.send_soon
        instance.start()
        self._lifecycle.started()

    async def shutdown(self) -> None:
        """Read no more. What was not committed comes again."""
        instance = self._instance
        if not self._lifecycle.stop() or instance is None:
            return
        for assigned in self._assigned.values():
            assigned.drop()
        self._assigned.clear()
        self._arrived.clear()
        self._has_arrived.set()
        await self._tasks.stop()
        await instance.stop()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of the topic that can be read. Raises NoRoute or NameServerUnreachable."""
        check_topic(topic)
        routes = self._running_instance().routes
        await routes.refresh(topic)
        queues = routes.queues_to_subscribe(topic)
        if not queues:
            raise NoRoute(f"no broker has a readable queue of topic {topic}")
        return queues

    def assign(self, queues: Iterable[MessageQueue], expression: MessageSelector | str = "*") -> None:
        """Let `poll` read these queues and no others, each from where the group has come to; of them what is asked for."""
        instance = self._running_instance()
        check_queues(queues)
        wanted = set(queues)
        for queue in wanted:
            check_queue(queue)
        self._is_assigned = True
        for queue in self._assigned.keys() - wanted:
            self._assigned.pop(queue).drop()
        for queue in wanted - self._assigned.keys():
            instance.routes.watch(queue.topic)
            self._begin(queue, _Assigned(Subscription.parse(queue.topic, expression, now_ms()), None))
        instance.heartbeats.send_soon()

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Let `poll` go on in an assigned queue at this offset. Raises IllegalConfiguration if it is not assigned."""
        self._running_instance()
        check_queue(queue)
        check_number("offset", offset, least=0)
        assigned = self._assigned.get(queue)
        if assigned is None:
            raise IllegalConfiguration(f"{queue} is not assigned: call assign([queue]) first")
        assigned.drop()
        self._begin(queue, _Assigned(assigned.subscription, offset))

    async def poll(self, timeout_ms: int = 5000, *, max_messages: int = 32) -> list[MessageExt]:
        """The next messages, in order within each queue; empty if none came in time.

        Raises IllegalConfiguration before the first `assign`.
        """
        self._running_instance()
        check_number("timeout_ms", timeout_ms, least=0)
        check_number("max_messages", max_messages, least=1)
        if not self._is_assigned:
            raise IllegalConfiguration(f"consumer {self.group} has no queues: call assign(await consumer.queues(topic)) first")
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        while not (messages := self._next(max_messages)):
            self._has_arrived.clear()
            try:
                async with asyncio.timeout(deadline_s - asyncio.get_running_loop().time()):
                    await self._has_arrived.wait()
            except TimeoutError:
                return []
            self._running_instance()
        return messages

    async def commit(self) -> None:
        """Keep on the brokers how far `poll` has given out messages, and wait until they have heard. Raises ClientError."""
        requests = self._running_requests()
        process_queues = [assigned.process_queue for assigned in self._assigned.values() if assigned.process_queue is not None]
        await requests.commit_offsets(self.group, {at_work.queue: at_work.committable_offset for at_work in process_queues})

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        expression: MessageSelector | str = "*",
        max_messages: int = 32,
        suspend_ms: int = 0,
    ) -> Pulled:
        """Ask once for messages from `offset` on; with `suspend_ms` the broker waits that long for one. Raises ClientError."""
        check_queue(queue)
        check_number("offset", offset, least=0)
        check_number("max_messages", max_messages, least=1)
        subscription = Subscription.parse(queue.topic, expression, now_ms())
        await self._watched(queue)
        return await self._running_requests().pull(
            self.group,
            queue,
            offset,
            subscription=subscription,
            max_messages=max_messages,
            sends_expression=True,
            suspend_ms=suspend_ms,
        )

    async def committed(self, queue: MessageQueue) -> int | None:
        """How far the group has come in the queue; None if the broker has no offset of it. Raises ClientError."""
        await self._watched(queue)
        return await self._running_requests().committed_offset(self.group, queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the queue's oldest message. Raises ClientError."""
        await self._watched(queue)
        return await self._running_requests().min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the queue's next message gets. Raises ClientError."""
        await self._watched(queue)
        return await self._running_requests().max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the queue that stands for a time. Raises ClientError."""
        await self._watched(queue)
        check_number("timestamp_ms", timestamp_ms, least=0)
        return await self._running_requests().search_offset(queue, timestamp_ms)

    def _begin(self, queue: MessageQueue, assigned: _Assigned) -> None:
        self._assigned[queue] = assigned
        assigned.task = self._tasks.start(f"client-read-{queue.topic}-{queue.queue_id}", self._read_ahead(queue, assigned))

    async def _read_ahead(self, queue: MessageQueue, assigned: _Assigned) -> None:
        assert self._requests is not None
        offset = await self._starting_offset(queue) if assigned.start is None else assigned.start
        while True:
            process_queue = assigned.process_queue = ProcessQueue(queue, offset)
            moved_to: list[int] = []
            events = PullEvents(
                on_messages=self._take,
                on_progress=lambda _: None,
                on_illegal_offset=lambda _, offset, moved_to=moved_to: moved_to.append(offset),  # type: ignore[misc]
                on_forgotten=lambda: None,
            )
            await PullLoop(self.group, process_queue, lambda: assigned.subscription, self._requests, self._settings, events).run()
            if not moved_to:
                return
            process_queue.drop()
            offset = moved_to[0]

    async def _starting_offset(self, queue: MessageQueue) -> int:
        assert self._store is not None
        assert self._requests is not None
        backoff = Backoff(0.1, 3.0)
        while True:
            try:
                return await self._start_at.find(queue, self._store, self._requests)
            except (ClientError, ProtocolError) as error:
                logger.debug("%s cannot be begun yet: %s", queue, error)
                await asyncio.sleep(backoff.next_pause_s())

    def _take(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        self._arrived.extend((process_queue, message) for message in messages)
        self._has_arrived.set()

    def _next(self, count: int) -> list[MessageExt]:
        messages: list[MessageExt] = []
        while self._arrived and len(messages) < count:
            process_queue, message = self._arrived.popleft()
            if not process_queue.is_dropped:
                process_queue.acknowledge([message.queue_offset])
                messages.append(message)
        return messages

    async def _watched(self, queue: MessageQueue) -> None:
        """Know the brokers of the queue's topic."""
        check_queue(queue)
        await self._running_instance().routes.refresh_if_unknown(queue.topic)

    def _membership(self, client_id: str) -> HeartbeatData:
        subscriptions = {assigned.subscription.topic: assigned.subscription for assigned in self._assigned.values()}
        consumer = ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            consume_from_where=self._start_at.from_where,
            subscription_data_set=[subscription.to_wire() for subscription in subscriptions.values()],
        )
        return HeartbeatData(client_id=client_id, consumer_data_set=[consumer])

    def _running_instance(self) -> ClientInstance:
        self._lifecycle.require_running()
        assert self._instance is not None
        return self._instance

    def _running_requests(self) -> QueueRequests:
        self._lifecycle.require_running()
        assert self._requests is not None
        return self._requests
