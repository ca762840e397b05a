"""Topics and consumer groups of the cluster for a broker that joins it: without them no client would use its queues."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rocketmq_broker.message import topics
from rocketmq_broker.store.tables.subscription_groups import SubscriptionGroups
from rocketmq_broker.store.tables.topic_configs import TopicConfigs


def give_topics(newcomer: Path, members: Iterable[Path], *, not_these: frozenset[str], now_ms: int) -> int:
    """Writes the topics and groups of the stores `members` into the store `newcomer`. Returns the number of topics.

    The first store that knows a name decides. Topics that a broker makes for itself, dead letters, and `not_these` are left out.
    Raises DamagedStore if a table cannot be read, OSError if one cannot be written.
    """
    config = newcomer / "config"
    own_topics, own_groups = TopicConfigs(config), SubscriptionGroups(config)
    for member in members:
        known_topics, known_groups = TopicConfigs(member / "config"), SubscriptionGroups(member / "config")
        known_topics.load()
        known_groups.load()
        for topic in known_topics:
            if topic.topic_name not in own_topics and is_of_users(topic.topic_name, not_these):
                own_topics.put(topic, now_ms)
        for group in known_groups:
            if group.group_name not in own_groups and not group.group_name.startswith(topics.SYSTEM_GROUP_PREFIX):
                own_groups.put(group, now_ms)
    newcomer.mkdir(mode=0o700, parents=True, exist_ok=True)
    config.mkdir(mode=0o700, exist_ok=True)
    own_topics.persist()
    own_groups.persist()
    return len(own_topics)


def is_of_users(topic: str, not_these: frozenset[str]) -> bool:
    """Returns whether a topic is one that users made; `not_these` belong to one broker each."""
    is_of_the_broker = topics.is_system_topic(topic) or topic == topics.PARKED_MARK_TOPIC
    return not (is_of_the_broker or topic.startswith(topics.DEAD_LETTER_PREFIX) or topic in not_these)
