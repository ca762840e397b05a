"""Defines the dependencies that most packages of the server share."""

from dataclasses import dataclass

from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.build import Clients
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets, MessageStore
from rocketmq_broker.world import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The store, and the objects that use it. Each package's `build` function takes its dependencies from this object."""

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
    """Runs work that is too long for one turn of the event loop, or that waits for clients."""
    clock: BrokerClock
    random: Chance
