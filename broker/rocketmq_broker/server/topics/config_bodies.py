"""The store's tables of topics and groups as bodies carry them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.message.topics import DEAD_LETTER_PREFIX, RETRY_PREFIX
from rocketmq_broker.protocol import bodies
from rocketmq_broker.store import TopicConfigs
from rocketmq_broker.store.tables.config_file import TableVersion


class TopicsSnapshot(NamedTuple):
    """An immutable copy of all topics, readable by another thread."""

    configs: tuple[TopicConfig, ...]
    data_version: TableVersion

    @classmethod
    def of(cls, configs: TopicConfigs) -> TopicsSnapshot:
        """Copies the topics."""
        return cls(tuple(configs), configs.data_version)


def topic_answer(config: TopicConfig) -> bodies.TopicConfigAndQueueMapping:
    """Converts one topic for clients that ask for its attributes, and get even an empty list."""
    return bodies.TopicConfigAndQueueMapping(**{**msgspec.structs.asdict(config), "attributes": config.attributes or {}})


def topics_body(
    configs: TopicConfigs | TopicsSnapshot, *, broker_permission: int | None = None
) -> bodies.TopicConfigSerializeWrapper:
    """Converts all topics. Limits their permissions by the broker's own."""
    settings = configs.configs if isinstance(configs, TopicsSnapshot) else configs
    table = {config.topic_name: config for config in settings}
    if broker_permission is not None and broker_permission & 6 != 6:
        table = {name: msgspec.structs.replace(config, perm=broker_permission) for name, config in table.items()}
    version = bodies.DataVersion(timestamp=configs.data_version.timestamp, counter=configs.data_version.counter)
    return bodies.TopicConfigSerializeWrapper(topic_config_table=table, data_version=version)


def registered_topics(topics: bodies.TopicConfigSerializeWrapper, most: int) -> bodies.TopicConfigSerializeWrapper:
    """Returns at most that many topics, the most important ones: omits retry topics before others, dead letters first."""
    if len(topics.topic_config_table) <= most:
        return topics
    names = sorted(topics.topic_config_table, key=_importance)[:most]
    table = {name: topics.topic_config_table[name] for name in names}
    return bodies.TopicConfigSerializeWrapper(topic_config_table=table, data_version=topics.data_version)


def _importance(topic: str) -> int:
    """Returns a sort key with the most important topics first."""
    return 2 if topic.startswith(DEAD_LETTER_PREFIX) else 1 if topic.startswith(RETRY_PREFIX) else 0


def groups_body(groups: Iterable[SubscriptionGroupConfig], data_version: TableVersion) -> bodies.SubscriptionGroupWrapper:
    """Converts consumer groups, with this version of their table."""
    version = bodies.DataVersion(timestamp=data_version.timestamp, counter=data_version.counter)
    table = {config.group_name: config for config in groups}
    return bodies.SubscriptionGroupWrapper(subscription_group_table=table, data_version=version)
