"""Everything that serves requests from an opened store, built and tied together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from broker.app.arrivals import Arrivals
from broker.app.opened_store import OpenedStore
from broker.config import BrokerSettings
from broker.config.settings import OTHER_NAMES
from broker.protocol.java_properties import property_line
from broker.remoting.client import RemotingClient
from broker.remoting.dispatcher import Dispatcher
from broker.remoting.tasks import Tasks
from broker.server.clients.client_processor import ClientProcessor
from broker.server.clients.consumer_groups import ConsumerGroups
from broker.server.clients.consumer_notices import ConsumerNotices
from broker.server.clients.lock_processor import LockProcessor
from broker.server.clients.message_filters import MessageFilters
from broker.server.clients.producer_groups import ProducerGroups
from broker.server.durability.group_commit import GroupCommit
from broker.server.durability.store_cleaner import StoreCleaner
from broker.server.operators.broker_info_processor import BrokerInfoProcessor
from broker.server.operators.consume_queue_processor import ConsumeQueueProcessor
from broker.server.operators.consumer_call_processor import ConsumerCallProcessor
from broker.server.operators.flow_processor import FlowProcessor
from broker.server.operators.group_admin_processor import GroupAdminProcessor
from broker.server.operators.progress_processor import ProgressProcessor
from broker.server.operators.settings_processor import SettingsProcessor
from broker.server.operators.topic_admin_processor import TopicAdminProcessor
from broker.server.parked import DeadLetterProcessor, ParkedMessages
from broker.server.pulling.held_pulls import HeldPulls
from broker.server.pulling.offset_processor import OffsetProcessor
from broker.server.pulling.pull_processor import PullProcessor
from broker.server.pulling.query_processor import QueryProcessor
from broker.server.schedule.broker_clock import BrokerClock
from broker.server.schedule.delayed_delivery import DelayedDelivery
from broker.server.schedule.expiry_clock import ExpiryClock
from broker.server.sending.reply_processor import ReplyProcessor
from broker.server.sending.send_back_processor import SendBackProcessor
from broker.server.sending.send_destination import SendDestination
from broker.server.sending.send_processor import SendProcessor
from broker.server.statistics.message_flows import MessageFlows
from broker.server.statistics.statistics import BrokerStatistics
from broker.server.topics.identity import BrokerIdentity
from broker.server.topics.registration import Registration
from broker.server.topics.subscription_group_table import SubscriptionGroupTable
from broker.server.topics.topic_deletion import TopicDeletion
from broker.server.topics.topic_table import TopicRules, TopicTable
from broker.server.transactions import NoTransactions, Transactions, build_transactions
from broker.store.tables.config_file import ConfigFile
from broker.transaction.check_counts import FILE_NAME
from broker.transaction.check_policy import CheckPolicy

YOUNG_QUEUE_SHARE_OF_MEMORY = 0.4
"""As long as a queue's first message is no older than this much of the log, RocketMQ takes it to be in memory."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The parts that have work to do between requests."""

    group_commit: GroupCommit
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    registration: Registration
    client_processor: ClientProcessor
    pull_processor: PullProcessor
    delayed_delivery: DelayedDelivery
    transactions: Transactions
    parked: ParkedMessages
    statistics: BrokerStatistics
    producer_groups: ProducerGroups
    consumer_groups: ConsumerGroups
    consumer_notices: ConsumerNotices
    replies: Tasks
    """Replies on their way to who waits for them."""
    cleaner: StoreCleaner


class _Builder:
    """Holds what many parts need while they are built."""

    def __init__(
        self,
        settings: BrokerSettings,
        identity: BrokerIdentity,
        store: OpenedStore,
        group_commit: GroupCommit,
        dispatcher: Dispatcher,
        tasks: Tasks,
        clock: BrokerClock,
    ) -> None:
        self.settings = settings
        self.identity = identity
        self.store = store
        self.group_commit = group_commit
        self.dispatcher = dispatcher
        self.tasks = tasks
        self.replies = Tasks()
        self.clock = clock
        newest_ms = store.messages.recovery.last_store_timestamp
        self.expiry_clock = ExpiryClock(clock, clock.steady_ms, newest_ms or None)
        self.statistics = BrokerStatistics(start_ms=clock(), flows=MessageFlows(settings.broker_cluster_name))
        self.message_filters = MessageFilters(is_property_filter_enabled=settings.enable_property_filter)
        self.producer_groups = ProducerGroups()
        self.consumer_notices = ConsumerNotices()
        self.consumer_groups = ConsumerGroups(
            self.consumer_notices.group_changed
            if settings.notify_consumer_ids_changed_enable
            else lambda group, connections: None
        )
        self.subscription_groups = SubscriptionGroupTable(
            store.groups,
            auto_create=settings.auto_create_subscription_group,
            clock=clock,
            most_groups=settings.max_subscription_group_num,
        )
        self.topic_table = TopicTable(store.topics, _topic_rules(settings), clock=clock)
        self.parked = ParkedMessages(store.messages, self.topic_table)
        self.parked.load()
        dispatcher.tell_disconnected(self.producer_groups.forget)
        dispatcher.tell_disconnected(self.consumer_groups.forget)

    def build(self, client: RemotingClient, name_servers: Sequence[str]) -> Serving:
        registration = Registration(
            client=client,
            name_servers=name_servers,
            identity=self.identity,
            topic_table=self.topic_table,
            broker_permission=self.settings.broker_permission,
            period_s=min(max(self.settings.register_name_server_period, 10_000), 60_000) / 1000,
        )
        self.topic_table.on_change = registration.request
        transactions = self._transactions()
        delayed_delivery = self._delayed_delivery()
        self.clock.tell(delayed_delivery.clock_stepped)
        self.group_commit.listeners += [delayed_delivery, self.parked]
        pull_processor = self._pull_processor()
        client_processor = self._client_processor()
        flows = self._message_flows()
        self.store.messages.arrival_listener = Arrivals(
            delayed_delivery.on_arrival, pull_processor.on_arrival, self.parked.on_arrival, counter=flows.on_arrival
        )
        self.dispatcher.add(pull_processor.handlers)
        self.dispatcher.add(client_processor.handlers)
        self._add_senders(transactions)
        self._add_readers()
        cleaner = StoreCleaner(
            self.store.messages,
            self.group_commit.file_lock,
            needed_from=transactions.needed_from,
            clock=self.expiry_clock,
        )
        self._add_administration(registration, delayed_delivery, cleaner)
        self._add_dead_letters()
        return Serving(
            self.group_commit,
            self.topic_table,
            self.subscription_groups,
            registration,
            client_processor,
            pull_processor,
            delayed_delivery,
            transactions,
            self.parked,
            self.statistics,
            self.producer_groups,
            self.consumer_groups,
            self.consumer_notices,
            self.replies,
            cleaner,
        )

    def _message_flows(self) -> MessageFlows:
        messages, flows = self.store.messages, self.statistics.flows
        flows.begin_at(
            (topic, queue_id, messages.max_offset(topic, queue_id))
            for topic, queue_ids in messages.queues().items()
            for queue_id in queue_ids
        )
        return flows

    def _transactions(self) -> Transactions:
        settings, store = self.settings, self.store
        return build_transactions(
            store=store.messages,
            consumer_offsets=store.consumer_offsets,
            counts_file=ConfigFile(store.messages.config.config_directory / FILE_NAME),
            topic_table=self.topic_table,
            producers=self.producer_groups,
            parked=self.parked,
            group_commit=self.group_commit,
            dispatcher=self.dispatcher,
            tasks=self.tasks,
            policy=CheckPolicy(
                transaction_timeout_ms=settings.transaction_time_out,
                check_interval_ms=settings.transaction_check_interval,
                check_max=settings.transaction_check_max,
                file_reserved_ms=settings.file_reserved_time * 3_600_000,
            ),
            clock=self.clock,
            expiry_clock=self.expiry_clock,
        )

    def _delayed_delivery(self) -> DelayedDelivery:
        return DelayedDelivery(
            store=self.store.messages,
            group_commit=self.group_commit,
            offsets=self.store.delay_offsets,
            queues=self.topic_table,
            levels_ms=self.store.messages.config.delay_levels_ms,
            clock=self.clock,
        )

    def _pull_processor(self) -> PullProcessor:
        settings = self.settings
        held_pulls = HeldPulls()
        self.dispatcher.tell_disconnected(held_pulls.forget)
        return PullProcessor(
            store=self.store.messages,
            topic_table=self.topic_table,
            subscription_groups=self.subscription_groups,
            consumer_groups=self.consumer_groups,
            offsets=self.store.consumer_offsets,
            held_pulls=held_pulls,
            message_filters=self.message_filters,
            statistics=self.statistics,
            max_messages=settings.max_transfer_count_on_message_in_memory,
            max_bytes=settings.max_transfer_bytes_on_message_in_memory,
            short_polling_ms=None if settings.long_polling_enable else settings.short_polling_time_mills,
            broker_permission=settings.broker_permission,
            clock=self.clock.steady_ms,
        )

    def _client_processor(self) -> ClientProcessor:
        return ClientProcessor(
            producer_groups=self.producer_groups,
            consumer_groups=self.consumer_groups,
            subscription_groups=self.subscription_groups,
            topic_table=self.topic_table,
            message_filters=self.message_filters,
            clock=self.clock.steady_ms,
        )

    def _add_senders(self, transactions: Transactions) -> None:
        highest_delay_level = len(self.store.messages.config.delay_levels_ms)
        destination = SendDestination(self.topic_table, self.subscription_groups)
        send = SendProcessor(
            identity=self.identity,
            store=self.store.messages,
            group_commit=self.group_commit,
            destination=destination,
            half_messages=NoTransactions(self.settings.broker_ip1)
            if self.settings.reject_transaction_message
            else transactions.messages,
            region_id=self.settings.region_id,
            is_trace_on=self.settings.trace_on,
            statistics=self.statistics,
            highest_delay_level=highest_delay_level,
            clock=self.clock,
        )
        send_back = SendBackProcessor(
            store=self.store.messages,
            group_commit=self.group_commit,
            topic_table=self.topic_table,
            subscription_groups=self.subscription_groups,
            statistics=self.statistics,
            consumer_groups=self.consumer_groups,
            offsets=self.store.consumer_offsets,
            highest_delay_level=highest_delay_level,
            clock=self.clock,
        )
        reply = ReplyProcessor(
            identity=self.identity,
            store=self.store.messages,
            group_commit=self.group_commit,
            destination=destination,
            producers=self.producer_groups,
            region_id=self.settings.region_id,
            is_trace_on=self.settings.trace_on,
            is_storing=self.settings.store_reply_message_enable,
            statistics=self.statistics,
            tasks=self.replies,
            clock=self.clock,
        )
        for processor in (send, send_back, reply):
            self.dispatcher.add(processor.handlers)

    def _add_readers(self) -> None:
        offsets = OffsetProcessor(
            store=self.store.messages, offsets=self.store.consumer_offsets, young_queue_bytes=_young_queue_bytes()
        )
        self.dispatcher.add(offsets.handlers)
        self.dispatcher.add(QueryProcessor(store=self.store.messages, tasks=self.tasks).handlers)
        self.dispatcher.add(LockProcessor(clock=self.clock.steady_ms).handlers)

    def _add_administration(self, registration: Registration, delayed_delivery: DelayedDelivery, cleaner: StoreCleaner) -> None:
        topics = TopicAdminProcessor(
            identity=self.identity,
            store=self.store.messages,
            topic_table=self.topic_table,
            consumer_groups=self.consumer_groups,
            offsets=self.store.consumer_offsets,
            registration=registration,
            deletion=TopicDeletion(
                self.store.messages, self.store.consumer_offsets, self.group_commit.file_lock, self.group_commit.checkpoints
            ),
            tasks=self.tasks,
        )
        groups = GroupAdminProcessor(
            subscription_groups=self.subscription_groups,
            consumer_groups=self.consumer_groups,
            producer_groups=self.producer_groups,
            offsets=self.store.consumer_offsets,
            date_of=self.clock.date_of,
        )
        progress = ProgressProcessor(
            identity=self.identity,
            store=self.store.messages,
            topic_table=self.topic_table,
            subscription_groups=self.subscription_groups,
            consumer_groups=self.consumer_groups,
            offsets=self.store.consumer_offsets,
            clock=self.clock,
            pulled_per_second=self.statistics.flows.pulled_per_second,
        )
        consumer_calls = ConsumerCallProcessor(
            identity=self.identity,
            store=self.store.messages,
            topic_table=self.topic_table,
            consumer_groups=self.consumer_groups,
            offsets=self.store.consumer_offsets,
            tasks=self.tasks,
        )
        info = BrokerInfoProcessor(
            store=self.store.messages,
            statistics=self.statistics,
            put_times=self.group_commit.put_times,
            delayed_delivery=delayed_delivery,
            settings_text=settings_text(self.settings),
            delete_expired=cleaner.ask,
            clock=self.clock,
        )
        consume_queues = ConsumeQueueProcessor(store=self.store.messages, consumer_groups=self.consumer_groups)
        flows = FlowProcessor(self.statistics.flows)
        for processor in (topics, groups, progress, consumer_calls, info, consume_queues, flows, SettingsProcessor()):
            self.dispatcher.add(processor.handlers)

    def _add_dead_letters(self) -> None:
        processor = DeadLetterProcessor(
            parked=self.parked,
            store=self.store.messages,
            group_commit=self.group_commit,
            topic_table=self.topic_table,
            subscription_groups=self.subscription_groups,
            clock=self.clock,
        )
        self.dispatcher.add(processor.handlers)


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
) -> Serving:
    """Builds all parts and gives their handlers to the dispatcher. Raises StoreError, OSError."""
    return _Builder(settings, identity, store, group_commit, dispatcher, tasks, clock).build(client, name_servers)


def settings_text(settings: BrokerSettings) -> str:
    """The settings as broker.conf would have them, spelled as in RocketMQ 4.9.7, passwords left out."""
    newer_names = {name: newer for newer, name in OTHER_NAMES.items()}
    values = {newer_names.get(name, name): value for name, value in msgspec.to_builtins(settings).items()}
    values |= {name: "******" for name, value in values.items() if value and name.endswith("Password")}
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
        most_topics=settings.max_topic_num,
        trace_topic=settings.msg_trace_topic_name if settings.trace_topic_enable else None,
    )


def _young_queue_bytes() -> int:
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * YOUNG_QUEUE_SHARE_OF_MEMORY)
