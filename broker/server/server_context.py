"""What most rooms of the server need when they are built."""

from __future__ import annotations

from dataclasses import dataclass

from broker.remoting.dispatcher import Dispatcher
from broker.remoting.tasks import Tasks
from broker.server.clients.build import Clients
from broker.server.durability.group_commit import GroupCommit
from broker.server.schedule.broker_clock import BrokerClock
from broker.server.statistics.statistics import BrokerStatistics
from broker.server.topics.identity import BrokerIdentity
from broker.server.topics.offset_commits import OffsetCommits
from broker.server.topics.subscription_group_table import SubscriptionGroupTable
from broker.server.topics.topic_table import TopicTable
from broker.store import ConsumerOffsets, MessageStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The store and what stands on it. Each room's `build` takes from it what its parts need, and adds their handlers."""

    identity: BrokerIdentity
    store: MessageStore
    offsets: ConsumerOffsets
    offset_commits: OffsetCommits
    group_commit: GroupCommit
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    clients: Clients
    statistics: BrokerStatistics
    dispatcher: Dispatcher
    tasks: Tasks
    """They take work that is too long for one turn of the event loop, or that waits for clients."""
    clock: BrokerClock
