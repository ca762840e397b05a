"""RocketMQ's message store, with commit log, consume queues, index files, recovery, retention and config files.

The package uses no event loop, socket or clock. The caller passes the time, and decides when to write, flush and publish.
"""

from rocketmq_broker.store.errors import (
    CorruptRecord,
    DamagedStore,
    IllegalMessage,
    RecordLost,
    RecordNotFound,
    StoreError,
    StoreLocked,
    StoreUnwritable,
    UnreadableRecord,
)
from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.message_store import MessageStore
from rocketmq_broker.store.queues.unit_files import Unsynced
from rocketmq_broker.store.recovery.report import RecoveryReport
from rocketmq_broker.store.results import Appended, Expired, GetMessageStatus, PulledMessages, QueriedMessages
from rocketmq_broker.store.settings import FlushDiskType, StoreConfig
from rocketmq_broker.store.tables.config_file import TableVersion
from rocketmq_broker.store.tables.consumer_offsets import ConsumerOffsets
from rocketmq_broker.store.tables.delay_offsets import DelayOffsets
from rocketmq_broker.store.tables.subscription_groups import SubscriptionGroups
from rocketmq_broker.store.tables.topic_configs import TopicConfigs
from rocketmq_broker.store.upkeep.checkpoint_rounds import ROUNDS

__all__ = [
    "ROUNDS",
    "Appended",
    "ConsumerOffsets",
    "CorruptRecord",
    "DamagedStore",
    "DelayOffsets",
    "Expired",
    "FileSystem",
    "FlushDiskType",
    "GetMessageStatus",
    "IllegalMessage",
    "MessageStore",
    "PulledMessages",
    "QueriedMessages",
    "RecordLost",
    "RecordNotFound",
    "RecoveryReport",
    "StoreConfig",
    "StoreError",
    "StoreLocked",
    "StoreUnwritable",
    "SubscriptionGroups",
    "TableVersion",
    "TopicConfigs",
    "UnreadableRecord",
    "Unsynced",
]
