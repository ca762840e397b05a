"""Creates the request processors of this package, and registers their handlers."""

from rocketmq_broker.server.durability.store_cleaner import StoreCleaner
from rocketmq_broker.server.operators.broker_info_processor import BrokerInfoProcessor
from rocketmq_broker.server.operators.consume_queue_processor import ConsumeQueueProcessor
from rocketmq_broker.server.operators.consumer_call_processor import ConsumerCallProcessor
from rocketmq_broker.server.operators.flow_processor import FlowProcessor
from rocketmq_broker.server.operators.group_admin_processor import GroupAdminProcessor
from rocketmq_broker.server.operators.progress_processor import ProgressProcessor
from rocketmq_broker.server.operators.topic_admin_processor import TopicAdminProcessor
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.server_context import ServerContext
from rocketmq_broker.server.topics.registration import Registration
from rocketmq_broker.server.topics.topic_deletion import TopicDeletion


def build_operators(
    context: ServerContext,
    *,
    registration: Registration,
    delayed_delivery: DelayedDelivery,
    cleaner: StoreCleaner,
    in_hand: InHand,
    settings_text: str,
) -> None:
    """Creates the request processors, and registers their handlers. `settings_text` is the response to getBrokerConfig."""
    group_commit, clients = context.group_commit, context.clients
    for processor in (
        TopicAdminProcessor(
            identity=context.identity,
            store=context.store,
            topic_table=context.topic_table,
            consumer_groups=clients.consumer_groups,
            offsets=context.offsets,
            registration=registration,
            deletion=TopicDeletion(context.store, context.offsets, group_commit.file_lock, group_commit.checkpoints),
            tasks=context.tasks,
        ),
        GroupAdminProcessor(
            subscription_groups=context.subscription_groups,
            consumer_groups=clients.consumer_groups,
            producer_groups=clients.producer_groups,
            offsets=context.offsets,
            date_of=context.clock.date_of,
        ),
        ProgressProcessor(
            identity=context.identity,
            store=context.store,
            topic_table=context.topic_table,
            subscription_groups=context.subscription_groups,
            consumer_groups=clients.consumer_groups,
            offsets=context.offsets,
            offset_commits=context.offset_commits,
            in_hand=in_hand,
            clock=context.clock,
            pulled_per_second=context.statistics.flows.pulled_per_second,
        ),
        ConsumerCallProcessor(
            identity=context.identity,
            store=context.store,
            topic_table=context.topic_table,
            consumer_groups=clients.consumer_groups,
            offsets=context.offsets,
            tasks=context.tasks,
        ),
        BrokerInfoProcessor(
            store=context.store,
            statistics=context.statistics,
            put_times=group_commit.put_times,
            delayed_delivery=delayed_delivery,
            in_hand=in_hand,
            settings_text=settings_text,
            delete_expired=cleaner.request_cleaning,
            clock=context.clock,
        ),
        ConsumeQueueProcessor(store=context.store, consumer_groups=clients.consumer_groups),
        FlowProcessor(context.statistics.flows),
    ):
        context.dispatcher.add(processor.handlers)
