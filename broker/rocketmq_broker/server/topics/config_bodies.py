"""Converts the store's tables of topics and groups to request and response bodies."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.message.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX
from rocketmq_broker.protocol.bodies.topic import (
    DataVersion,
    SubscriptionGroupWrapper,
    TopicConfigAndQueueMapping,
    TopicConfigSerializeWrapper,
)
from rocketmq_broker.store import TopicConfigs
from rocketmq_broker.store.tables.config_file import TableVersion


class TopicsSnapshot(NamedTuple):
    """An immutable copy of all topics, which other threads can read."""

    configs: tuple[TopicConfig, ...]
    data_version: TableVersion

    @classmethod
    def of(cls, configs: TopicConfigs) -> "TopicsSnapshot":
        """Copies the topics."""
        return cls(tuple(configs), configs.data_version)


def topic_answer(config: TopicConfig) -> TopicConfigAndQueueMapping:
    """Converts one topic to a response body. The body always contains the attributes, even if empty, as clients expect."""
    return TopicConfigAndQueueMapping(**{**msgspec.structs.asdict(config), "attributes": config.attributes or {}})


def topics_body(configs: TopicConfigs | TopicsSnapshot, *, broker_permission: int | None = None) -> TopicConfigSerializeWrapper:
    """Converts all topics to a body. `broker_permission` limits the permissions of each topic."""
    settings = configs.configs if isinstance(configs, TopicsSnapshot) else configs
    table = {config.topic_name: config for config in settings}
    if broker_permission is not None and broker_permission & 6 != 6:
        table = {name: msgspec.structs.replace(config, perm=broker_permission) for name, config in table.items()}
    version = DataVersion(timestamp=configs.data_version.timestamp, counter=configs.data_version.counter)
    return TopicConfigSerializeWrapper(topic_config_table=table, data_version=version)


def registered_topics(topics: TopicConfigSerializeWrapper, limit: int) -> TopicConfigSerializeWrapper:
    """Returns at most `limit` topics. If there are more, omits dead-letter topics first, then retry topics, then others."""
    if len(topics.topic_config_table) <= limit:
        return topics
    names = sorted(topics.topic_config_table, key=_importance)[:limit]
    table = {name: topics.topic_config_table[name] for name in names}
    return TopicConfigSerializeWrapper(topic_config_table=table, data_version=topics.data_version)


def _importance(topic: str) -> int:
    """Returns a sort key that puts the most important topics first."""
    return 2 if topic.startswith(DEAD_LETTER_PREFIX) else 1 if topic.startswith(RETRY_PREFIX) else 0


def groups_body(groups: Iterable[SubscriptionGroupConfig], data_version: TableVersion) -> SubscriptionGroupWrapper:
    """Converts consumer groups and the version of their table to a response body."""
    version = DataVersion(timestamp=data_version.timestamp, counter=data_version.counter)
    table = {config.group_name: config for config in groups}
    return SubscriptionGroupWrapper(subscription_group_table=table, data_version=version)
