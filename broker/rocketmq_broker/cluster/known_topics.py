"""Copies topics and consumer groups to a broker that joins the cluster. Without them, no client would use the broker's queues."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rocketmq_broker.message import topics
from rocketmq_broker.store.tables.subscription_groups import SubscriptionGroups
from rocketmq_broker.store.tables.topic_configs import TopicConfigs


def copy_topics(new_store: Path, members: Iterable[Path], *, excluded: frozenset[str], now_ms: int) -> int:
    """Copies the topics and groups of the stores `members` into `new_store`. Returns the number of topics in `new_store`.

    A topic or group that several stores contain is copied from the first of them. System topics, dead-letter topics and
    `excluded` are not copied. Raises DamagedStore if a table cannot be read, OSError if one cannot be written.
    """
    config = new_store / "config"
    own_topics, own_groups = TopicConfigs(config), SubscriptionGroups(config)
    for member in members:
        known_topics, known_groups = TopicConfigs(member / "config"), SubscriptionGroups(member / "config")
        known_topics.load()
        known_groups.load()
        for topic in known_topics:
            if topic.topic_name not in own_topics and is_user_topic(topic.topic_name, excluded):
                own_topics.put(topic, now_ms)
        for group in known_groups:
            if group.group_name not in own_groups and not group.group_name.startswith(topics.SYSTEM_GROUP_PREFIX):
                own_groups.put(group, now_ms)
    new_store.mkdir(mode=0o700, parents=True, exist_ok=True)
    config.mkdir(mode=0o700, exist_ok=True)
    own_topics.persist()
    own_groups.persist()
    return len(own_topics)


def is_user_topic(topic: str, excluded: frozenset[str]) -> bool:
    """Returns True if users created the topic. `excluded` are the topics that each belong to a single broker."""
    is_of_the_broker = topics.is_system_topic(topic) or topic == topics.PARKED_MARK_TOPIC
    return not (is_of_the_broker or topic.startswith(topics.DEAD_LETTER_PREFIX) or topic in excluded)
