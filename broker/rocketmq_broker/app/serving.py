"""Builds the parts that serve requests from an opened store. Most packages of the server build their own parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rocketmq_broker.app.opened_store import OpenedStore
from rocketmq_broker.app.pace import Pace
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.config.settings import OTHER_NAMES
from rocketmq_broker.config.without_effect import FIXED_VALUES
from rocketmq_broker.protocol.java_properties import property_line
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.build import build_clients
from rocketmq_broker.server.durability.arrivals import Arrivals
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.durability.store_cleaner import StoreCleaner
from rocketmq_broker.server.operators.build import build_operators
from rocketmq_broker.server.parked import ParkedMessages, build_parked
from rocketmq_broker.server.popping import Popping, build_popping
from rocketmq_broker.server.pulling.build import build_pulling
from rocketmq_broker.server.pulling.pull_processor import PullProcessor
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.schedule.expiry_clock import ExpiryClock
from rocketmq_broker.server.sending.build import build_sending
from rocketmq_broker.server.server_context import ServerContext
from rocketmq_broker.server.statistics.message_flows import MessageFlows
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.registration import Registration
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicRules, TopicTable
from rocketmq_broker.server.transactions import NoTransactions, Transactions, build_transactions
from rocketmq_broker.store import DelayOffsets, MessageStore
from rocketmq_broker.store.tables.config_file import ConfigFile
from rocketmq_broker.transaction.checking.check_counts import FILE_NAME
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.world import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The parts of the broker that are used after the start, for example by background work."""

    context: ServerContext
    registration: Registration
    pull_processor: PullProcessor
    popping: Popping
    delayed_delivery: DelayedDelivery
    transactions: Transactions
    parked: ParkedMessages
    replies: Tasks
    """The background tasks that push replies to their requesters."""
    cleaner: StoreCleaner


def build_serving(
    settings: BrokerSettings,
    identity: BrokerIdentity,
    store: OpenedStore,
    group_commit: GroupCommit,
    dispatcher: Dispatcher,
    tasks: Tasks,
    client: RemotingClient,
    name_servers: Sequence[str],
    clock: BrokerClock,
    random: Chance,
    pace: Pace,
) -> Serving:
    """Builds all parts, and registers their handlers. Raises StoreError or OSError."""
    context = _context(settings, identity, store, group_commit, dispatcher, tasks, clock, random)
    registration = _registration(context, settings, client, name_servers)
    recovery = store.messages.recovery
    expiry_clock = ExpiryClock(clock, clock.steady_ms, recovery.last_store_timestamp or None, recovery.believed_ms)
    store.messages.checkpoints.believed_ms = expiry_clock
    parked = build_parked(context)
    transactions = _transactions(context, settings, parked, expiry_clock, pace)
    delayed_delivery = _delayed_delivery(context, store.delay_offsets, pace)
    pull_processor = build_pulling(
        context,
        max_messages=settings.max_transfer_count_on_message_in_memory,
        max_bytes=settings.max_transfer_bytes_on_message_in_memory,
        short_polling_ms=None if settings.long_polling_enable else settings.short_polling_time_mills,
        broker_permission=settings.broker_permission,
    )
    popping = build_popping(
        context,
        route_of=registration.route_of,
        max_bytes=settings.max_transfer_bytes_on_message_in_memory,
        broker_permission=settings.broker_permission,
        max_sleep_s=pace.max_sleep_s,
    )
    store.messages.arrival_listener = Arrivals(
        delayed_delivery.on_arrival,
        pull_processor.on_arrival,
        popping.on_arrival,
        parked.on_arrival,
        counter=_message_flows(context.statistics, store.messages).on_arrival,
    )
    replies = _sending(context, settings, transactions)
    cleaner = StoreCleaner(store.messages, group_commit.file_lock, needed_from=transactions.needed_from, clock=expiry_clock)
    build_operators(
        context,
        registration=registration,
        delayed_delivery=delayed_delivery,
        cleaner=cleaner,
        in_hand=popping.in_hand,
        settings_text=settings_for_tools(settings),
    )
    return Serving(
        context=context,
        registration=registration,
        pull_processor=pull_processor,
        popping=popping,
        delayed_delivery=delayed_delivery,
        transactions=transactions,
        parked=parked,
        replies=replies,
        cleaner=cleaner,
    )


def _context(
    settings: BrokerSettings,
    identity: BrokerIdentity,
    store: OpenedStore,
    group_commit: GroupCommit,
    dispatcher: Dispatcher,
    tasks: Tasks,
    clock: BrokerClock,
    random: Chance,
) -> ServerContext:
    topic_table = TopicTable(store.topics, _topic_rules(settings), clock=clock, check_folder=store.messages.check_folder)
    subscription_groups = SubscriptionGroupTable(
        store.groups,
        auto_create=settings.auto_create_subscription_group,
        clock=clock,
        max_groups=settings.max_subscription_group_num,
    )
    return ServerContext(
        identity=identity,
        store=store.messages,
        offsets=store.consumer_offsets,
        offset_commits=OffsetCommits(store.consumer_offsets, topic_table, subscription_groups),
        group_commit=group_commit,
        topic_table=topic_table,
        subscription_groups=subscription_groups,
        clients=build_clients(
            topic_table=topic_table,
            subscription_groups=subscription_groups,
            dispatcher=dispatcher,
            steady_ms=clock.steady_ms,
            notifies_consumers=settings.notify_consumer_ids_changed_enable,
            is_property_filter_enabled=settings.enable_property_filter,
        ),
        statistics=BrokerStatistics(start_ms=clock(), flows=MessageFlows(settings.broker_cluster_name)),
        dispatcher=dispatcher,
        tasks=tasks,
        clock=clock,
        random=random,
    )


def _registration(
    context: ServerContext, settings: BrokerSettings, client: RemotingClient, name_servers: Sequence[str]
) -> Registration:
    registration = Registration(
        client=client,
        name_servers=name_servers,
        identity=context.identity,
        topic_table=context.topic_table,
        broker_permission=settings.broker_permission,
        period_s=min(max(settings.register_name_server_period, 10_000), 60_000) / 1000,
    )
    context.topic_table.on_change = registration.topic_changed
    registration.on_registered = context.clients.consumer_groups.topics_changed
    return registration


def _transactions(
    context: ServerContext, settings: BrokerSettings, parked: ParkedMessages, expiry_clock: ExpiryClock, pace: Pace
) -> Transactions:
    return build_transactions(
        store=context.store,
        consumer_offsets=context.offsets,
        counts_file=ConfigFile(context.store.config.config_directory / FILE_NAME, context.store.files),
        topic_table=context.topic_table,
        producers=context.clients.producer_groups,
        parked=parked,
        group_commit=context.group_commit,
        dispatcher=context.dispatcher,
        tasks=context.tasks,
        policy=CheckPolicy(
            transaction_timeout_ms=settings.transaction_time_out,
            check_interval_ms=settings.transaction_check_interval,
            answer_timeout_ms=settings.transaction_check_answer_time_out,
            check_max=settings.transaction_check_max,
            file_reserved_ms=settings.file_reserved_time * 3_600_000,
        ),
        clock=context.clock,
        expiry_clock=expiry_clock,
        max_sleep_s=pace.max_sleep_s,
        idle_notes_s=pace.idle_notes_s,
    )


def _delayed_delivery(context: ServerContext, offsets: DelayOffsets, pace: Pace) -> DelayedDelivery:
    delayed_delivery = DelayedDelivery(
        store=context.store,
        group_commit=context.group_commit,
        offsets=offsets,
        queues=context.topic_table,
        levels_ms=context.store.config.delay_levels_ms,
        clock=context.clock,
        max_sleep_s=pace.max_sleep_s,
    )
    context.clock.on_step(delayed_delivery.clock_stepped)
    context.group_commit.listeners.append(delayed_delivery)
    return delayed_delivery


def _sending(context: ServerContext, settings: BrokerSettings, transactions: Transactions) -> Tasks:
    """Builds the parts that store sent messages. Returns the tasks that push replies."""
    replies = Tasks()
    is_rejecting = settings.reject_transaction_message
    build_sending(
        context,
        half_messages=NoTransactions(settings.broker_ip1) if is_rejecting else transactions.messages,
        replies=replies,
        region_id=settings.region_id,
        is_trace_on=settings.trace_on,
        is_storing_replies=settings.store_reply_message_enable,
    )
    return replies


def _message_flows(statistics: BrokerStatistics, store: MessageStore) -> MessageFlows:
    """Starts counting new messages. Returns the counters."""
    statistics.flows.begin_at(
        (topic, queue_id, store.max_offset(topic, queue_id))
        for topic, queue_ids in store.queues().items()
        for queue_id in queue_ids
    )
    return statistics.flows


def settings_text(settings: BrokerSettings) -> str:
    """Returns the settings in the format of broker.conf, with the names of RocketMQ 4.9.7. Passwords are masked."""
    newer_names = {name: newer for newer, name in OTHER_NAMES.items()}
    values = {newer_names.get(name, name): value for name, value in msgspec.to_builtins(settings).items()}
    values |= {name: "******" for name, value in values.items() if value and name.endswith("Password")}
    return _property_lines(values)


def settings_for_tools(settings: BrokerSettings) -> str:
    """Returns the response to GET_BROKER_CONFIG: the settings, and further properties that Apache's tools expect."""
    return settings_text(settings) + _property_lines({**FIXED_VALUES, "useTLS": settings.tls_enable})


def _property_lines(values: Mapping[str, object]) -> str:
    return "".join(
        property_line(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in values.items()
    )


def _topic_rules(settings: BrokerSettings) -> TopicRules:
    return TopicRules(
        cluster=settings.broker_cluster_name,
        broker_name=settings.broker_name,
        auto_create_topic_enable=settings.auto_create_topic_enable,
        default_topic_queue_nums=settings.default_topic_queue_nums,
        cluster_topic_enable=settings.cluster_topic_enable,
        broker_topic_enable=settings.broker_topic_enable,
        max_topics=settings.max_topic_num,
        trace_topic=settings.msg_trace_topic_name if settings.trace_topic_enable else None,
    )
