"""Creates the DelayedDelivery, and connects it to the rest of the broker."""

from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import DelayOffsets, MessageStore


def build_delayed_delivery(
    *,
    store: MessageStore,
    offsets: DelayOffsets,
    topic_table: TopicTable,
    group_commit: GroupCommit,
    clock: BrokerClock,
    max_sleep_s: float,
) -> DelayedDelivery:
    """Creates a DelayedDelivery, and registers it as a listener for lost records and for steps of the clock.

    The caller must report new messages to the returned object.
    """
    delayed_delivery = DelayedDelivery(
        store=store,
        group_commit=group_commit,
        offsets=offsets,
        queues=topic_table,
        levels_ms=store.config.delay_levels_ms,
        clock=clock,
        max_sleep_s=max_sleep_s,
    )
    clock.on_step(delayed_delivery.clock_stepped)
    group_commit.listeners.append(delayed_delivery)
    return delayed_delivery
