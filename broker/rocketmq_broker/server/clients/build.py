"""Creates the objects of this package, and registers their request handlers."""

from collections.abc import Callable
from dataclasses import dataclass

from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.server.clients.client_processor import ClientProcessor
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.consumer_notices import ConsumerNotices
from rocketmq_broker.server.clients.lock_processor import LockProcessor
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """The objects of this package that the rest of the broker uses."""

    producer_groups: ProducerGroups
    consumer_groups: ConsumerGroups
    consumer_notices: ConsumerNotices
    message_filters: MessageFilters
    processor: ClientProcessor
    locks: LockProcessor


def build_clients(
    *,
    topic_table: TopicTable,
    subscription_groups: SubscriptionGroupTable,
    dispatcher: Dispatcher,
    steady_ms: Callable[[], int],
    notifies_consumers: bool,
    is_property_filter_enabled: bool,
) -> Clients:
    """Creates the objects of this package, and registers their handlers.

    `notifies_consumers` is RocketMQ's setting notifyConsumerIdsChangedEnable.
    """
    producer_groups, notices = ProducerGroups(), ConsumerNotices()
    consumer_groups = ConsumerGroups(notices.group_changed if notifies_consumers else lambda group, connections: None)
    filters = MessageFilters(is_property_filter_enabled=is_property_filter_enabled)
    processor = ClientProcessor(
        producer_groups=producer_groups,
        consumer_groups=consumer_groups,
        subscription_groups=subscription_groups,
        topic_table=topic_table,
        message_filters=filters,
        clock=steady_ms,
    )
    dispatcher.add(processor.handlers)
    locks = LockProcessor(clock=steady_ms)
    dispatcher.add(locks.handlers)
    dispatcher.add_disconnect_listener(producer_groups.forget)
    dispatcher.add_disconnect_listener(consumer_groups.forget)
    return Clients(
        producer_groups=producer_groups,
        consumer_groups=consumer_groups,
        consumer_notices=notices,
        message_filters=filters,
        processor=processor,
        locks=locks,
    )
