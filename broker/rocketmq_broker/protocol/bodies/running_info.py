"""The state of a consumer: its settings, queues and rates (RocketMQ's ConsumerRunningInfo)."""

from enum import Enum
from typing import Final

import msgspec

from rocketmq_broker.protocol.bodies.heartbeat import SubscriptionData
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.queue_table import QueueTable

PROP_NAMESERVER_ADDR: Final = "PROP_NAMESERVER_ADDR"
PROP_THREADPOOL_CORE_SIZE: Final = "PROP_THREADPOOL_CORE_SIZE"
PROP_CONSUME_ORDERLY: Final = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE: Final = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION: Final = "PROP_CLIENT_VERSION"
PROP_CONSUMER_START_TIMESTAMP: Final = "PROP_CONSUMER_START_TIMESTAMP"


class ProcessQueueInfo(BodyPart):
    """The state of one queue in a consumer. Times are in milliseconds since the epoch."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mi_b: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class ConsumeSpeed(BodyPart):
    """A consumer's times in milliseconds and rates in messages per second, for one topic (RocketMQ's ConsumeStatus)."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class ConsumerRunningInfo(Body):
    """The response body of GET_CONSUMER_RUNNING_INFO."""

    properties: dict[str, str] = {}
    """Maps the PROP_* names to their values, and the names of the consumer's settings to their values."""
    subscription_set: list[SubscriptionData] = []
    mq_table: QueueTable[ProcessQueueInfo] = msgspec.field(default_factory=QueueTable)
    status_table: dict[str, ConsumeSpeed] = {}
    """The consumer's rates, keyed by topic."""
    jstack: str | None = None


class CMResult(Enum):
    """The possible results when a consumer handles a message at an operator's request."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class ConsumeMessageDirectlyResult(Body):
    """The response body of CONSUME_MESSAGE_DIRECTLY. Go clients send the result as an ordinal."""

    order: bool = False
    auto_commit: bool = True
    consume_result: CMResult | int | None = None
    remark: str | None = None
    spent_time_mills: int = 0
