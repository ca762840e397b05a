"""The parts of a broker from which metrics are read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.parked import ParkedMessages
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.server.transactions import TransactionalMessages
from rocketmq_broker.store import ConsumerOffsets, MessageStore

T = TypeVar("T")

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSources:
    """Parts of a running broker that the event loop changes. A scrape reads them in another thread with `read_consistently`."""

    labels: Mapping[str, str]
    """The common labels of all metrics."""
    transactions: TransactionalMessages
    statistics: BrokerStatistics
    group_commit: GroupCommit
    store: MessageStore
    consumer_offsets: ConsumerOffsets
    parked: ParkedMessages
    in_hand: InHand
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    producer_groups: ProducerGroups
    consumer_groups: ConsumerGroups
    count_connections: Callable[[], int]
    registered_with: Callable[[], Mapping[str, bool]]
    """Returns whether the last registration succeeded, for each name server address."""
    clock: Callable[[], int]


def read_consistently(read: Callable[[], T]) -> T:
    """Returns the result of `read`. Calls `read` again if the size of a table changes during the call.

    Repeated calls are rare, because `read` only copies a table.
    """
    for _ in range(_ATTEMPTS):
        try:
            return read()
        except RuntimeError:
            continue
    return read()
