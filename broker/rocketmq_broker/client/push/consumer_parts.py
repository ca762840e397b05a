"""Creates and connects the parts of a running push consumer."""

from collections.abc import Mapping

from rocketmq_broker.client.instance.instance import ClientInstance
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.producer.message_sender import MessageSender, SendRequests, SendSettings
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.pull.offset_store import BrokerOffsetStore, LocalFileOffsetStore, OffsetStore
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.pull_loop import PullEvents, PullLoop, PullSettings
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.client.pull.result_positions import ResultOffsetStore, ResultPositions
from rocketmq_broker.client.pull.starting_offset import StartingOffset
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.client.pull.subscription_check import SubscriptionCheck
from rocketmq_broker.client.push.concurrent_consumption import ConcurrentConsumption
from rocketmq_broker.client.push.consumer_settings import ConsumerSettings
from rocketmq_broker.client.push.listener_runners import runner_of
from rocketmq_broker.client.push.message_return import MessageReturn
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.client.push.operators.direct_consumption import DirectConsumption
from rocketmq_broker.client.push.operators.running_info import ConsumerState
from rocketmq_broker.client.push.orderly_consumption import OrderlyConsumption
from rocketmq_broker.client.rebalance.assignment import Assignment, Consumption
from rocketmq_broker.client.rebalance.queue_locks import OwnQueueLocks
from rocketmq_broker.client.rebalance.rebalance import Rebalance
from rocketmq_broker.message.ids import UniqueIdMaker

_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
"""The producer group of messages returned to the retry topic (RocketMQ's MixAll.CLIENT_INNER_PRODUCER_GROUP)."""
_BYTES_PER_MIB = 1024 * 1024


class ConsumerParts:
    """The connected parts of a running push consumer."""

    def __init__(
        self,
        group: str,
        instance: ClientInstance,
        settings: ConsumerSettings,
        subscriptions: Mapping[str, Subscription],
        listener: MessageListener,
        *,
        is_orderly: bool,
        results: ResultPositions | None = None,
    ) -> None:
        """`subscriptions` may change while the consumer runs. `results` stores positions in the listener's database."""
        world = instance.world
        self._group = group
        self._instance = instance
        self._settings = settings
        self._subscriptions = subscriptions
        self._is_orderly = is_orderly
        self._results = results
        self._queue_requests = QueueRequests(instance.calls, max_body_length=settings.max_body_size)
        self._group_requests = GroupRequests(instance.calls)
        self._statistics = ConsumerStatistics(world.steady_s)
        self._runner = runner_of(listener, f"listener-{group[:100]}", settings.consume_thread_max, world)
        self.direct = DirectConsumption(listener, self._runner, world, is_orderly=is_orderly)
        self.subscription_check = SubscriptionCheck(group, instance.client_id, instance.routes, self._group_requests)
        self.store = self._offset_store()
        self.locks = self._queue_locks()
        self.consumption = self._consumption(listener)
        start = StartingOffset(settings.consume_from_where, settings.consume_timestamp_ms)
        self.assignment = Assignment(
            self.consumption,
            self.store,
            find_start=lambda queue: start.find(queue, self.store, self._queue_requests),
            pull=self._pull,
            world=world,
        )
        self.rebalance = Rebalance(
            group,
            instance.client_id,
            topics=lambda: list(subscriptions),
            routes=instance.routes,
            requests=None if settings.is_broadcasting else self._group_requests,
            assignment=self.assignment,
            on_unknown_here=instance.heartbeats.send_soon,
            random=world.random,
        )
        self.assignment.on_moved = self.rebalance.trigger

    def state(self) -> ConsumerState:
        """Returns a view of the consumer's state, for operators' requests."""
        return ConsumerState(
            group=self._group,
            name_servers=self._instance.routes.namesrv_addr,
            settings=self._settings,
            subscriptions=self._subscriptions,
            process_queues=lambda: self.assignment.process_queues,
            statistics=self._statistics,
            locks=self.locks,
            is_orderly=self._is_orderly,
            world=self._instance.world,
            started_ms=self._instance.world.wall_ms(),
        )

    def _offset_store(self) -> OffsetStore:
        if not self._settings.is_broadcasting:
            at_brokers = BrokerOffsetStore(self._group, self._queue_requests)
            if self._results is None:
                return at_brokers
            return ResultOffsetStore(
                at_brokers,
                self._results,
                self._queue_requests,
                lambda *to: self.assignment.move(*to),
                self._instance.world.run_function,
            )
        instance = f"{self._instance.client_ip}@{self._settings.instance_name}"
        return LocalFileOffsetStore(self._settings.local_offset_directory / instance / self._group)

    def _queue_locks(self) -> OwnQueueLocks | None:
        if not self._is_orderly or self._settings.is_broadcasting:
            return None
        return OwnQueueLocks(self._group, self._instance.client_id, self._group_requests, self._instance.world.steady_s)

    def _consumption(self, listener: MessageListener) -> Consumption:
        settings = self._settings
        message_return = None if settings.is_broadcasting else self._message_return()
        if self._is_orderly:
            return OrderlyConsumption(
                listener,
                self._runner,
                self._progressed,
                message_return,
                self.locks,
                batch_size=settings.consume_message_batch_max_size,
                max_reconsume_times=settings.orderly_redeliveries,
                statistics=self._statistics,
            )
        return ConcurrentConsumption(
            listener,
            self._runner,
            self._progressed,
            message_return,
            batch_size=settings.consume_message_batch_max_size,
            statistics=self._statistics,
        )

    def _message_return(self) -> MessageReturn:
        instance, requests = self._instance, SendRequests(self._instance.calls)
        ids = UniqueIdMaker(instance.world, instance.client_ip)
        sender = MessageSender(_INNER_PRODUCER_GROUP, requests, instance.routes, ids, SendSettings(), instance.world)
        return MessageReturn(self._group, self._group_requests, sender, self._settings.redeliveries)

    async def _pull(self, process_queue: ProcessQueue) -> None:
        settings = self._settings
        topic = process_queue.queue.topic
        loop = PullLoop(
            self._group,
            process_queue,
            lambda: self._subscriptions[topic],
            self._queue_requests,
            PullSettings(
                batch_size=settings.pull_batch_size,
                max_count=settings.pull_threshold_for_queue,
                max_bytes=settings.pull_threshold_size_for_queue * _BYTES_PER_MIB,
                max_span=None if self._is_orderly else settings.consume_concurrently_max_span,
                # With `results`, a pull would commit an offset before its position is in the database.
                commits_offset=not settings.is_broadcasting and self._results is None,
            ),
            PullEvents(
                on_messages=self.consumption.arrived,
                on_progress=self._progressed,
                on_illegal_offset=lambda process_queue, offset: self.assignment.move(process_queue.queue, offset),
                on_subscription_unknown=self._instance.heartbeats.send_soon,
                on_pulled=self._statistics.pulled,
            ),
        )
        await loop.run()

    def _progressed(self, process_queue: ProcessQueue) -> None:
        if not process_queue.is_dropped:
            self.store.update(process_queue.queue, process_queue.committable_offset)
