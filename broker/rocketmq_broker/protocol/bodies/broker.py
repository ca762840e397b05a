"""Bodies with a broker's statistics and with the units of its consume queues."""

import msgspec

from rocketmq_broker.protocol.bodies.heartbeat import SubscriptionData
from rocketmq_broker.protocol.body import Body, BodyPart


class KVTable(Body):
    """A map of strings, which is the response body of GET_BROKER_RUNTIME_INFO and GET_KVLIST_BY_NAMESPACE."""

    table: dict[str, str] = {}


class BrokerStatsItem(BodyPart):
    """The sum, rate and average of a statistic over a period."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(Body):
    """The response body of VIEW_BROKER_STATS_DATA, with one statistic over the last minute, hour and day."""

    stats_minute: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)
    stats_hour: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)
    stats_day: BrokerStatsItem = msgspec.field(default_factory=BrokerStatsItem)


class ConsumeQueueData(BodyPart):
    """One unit of a consume queue. It includes whether the message passes the group's filter."""

    physic_offset: int
    physic_size: int
    tags_code: int
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class QueryConsumeQueueResponseBody(Body):
    """The response body of QUERY_CONSUME_QUEUE."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueData] = []
    max_queue_index: int = 0
    min_queue_index: int = 0
