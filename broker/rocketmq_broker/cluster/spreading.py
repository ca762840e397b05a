"""Creates new topics on all brokers, and copies topics and groups to a broker that joins.

A topic that is created by its first message exists only on one broker. Clients do not use the queues of a broker without topics.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies.topic import TopicList
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.store.tables.subscription_groups import SubscriptionGroups
from rocketmq_broker.store.tables.topic_configs import TopicConfigs

POLL_INTERVAL_S = 2.0


def topics_in(stores: Iterable[Path]) -> set[str]:
    """Returns the topics in the stores. No broker may be using the stores. Raises DamagedStore."""
    names: set[str] = set()
    for store in stores:
        table = TopicConfigs(store / "config")
        table.load()
        names |= {topic.topic_name for topic in table}
    return names


class TopicSpreading:
    """Creates each new topic once on all brokers. Later changes and deletions by operators are not undone."""

    def __init__(self, known: set[str], excluded: frozenset[str]) -> None:
        """Ignores the topics in `known`, which existed before.

        Also ignores the topics in `excluded`, each of which belongs to a single broker.
        """
        self._known = set(known)
        self._excluded = excluded

    async def spread(self, name_server: str, brokers: Sequence[str]) -> list[str]:
        """Creates new topics on the brokers that do not have them. Returns the names of the new topics.

        `brokers` are the addresses of all brokers that should have the topics. If the name server lists a topic that none of
        these brokers has, the topic is ignored, because anyone can register a topic there. Raises AdminError if a request fails.
        The next call tries again.
        """
        async with opened_session(Target(broker_addr=name_server)) as session:
            names = await _topics_at_name_server(session.brokers[0])
        new = [name for name in sorted(names - self._known) if self._is_to_spread(name)]
        created = await _create_everywhere(new, brokers) if new else []
        self._known.update(created)
        return created

    def _is_to_spread(self, name: str) -> bool:
        return is_user_topic(name, self._excluded) and not name.startswith(topics.RETRY_PREFIX)


async def _topics_at_name_server(name_server: BrokerRequests) -> set[str]:
    return set((await name_server.ask_for(TopicList.decode, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)).topic_list)


async def _create_everywhere(names: Sequence[str], brokers: Sequence[str]) -> list[str]:
    tables = {address: await _topics_at(address) for address in brokers}
    created = []
    for name in names:
        config = next((table[name] for table in tables.values() if name in table), None)
        if config is None:
            continue
        for address in brokers:
            if name not in tables[address]:
                await _create(config, address)
        created.append(name)
    return created


async def _topics_at(address: str) -> dict[str, TopicConfig]:
    async with opened_session(Target(broker_addr=address)) as session:
        return await session.brokers[0].topic_configs()


async def _create(config: TopicConfig, address: str) -> None:
    attributes = config.attributes if config.attributes is not msgspec.UNSET else {}
    header = CreateTopicRequestHeader(
        topic=config.topic_name,
        default_topic=topics.AUTO_CREATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        attributes=",".join(f"+{name}={value}" for name, value in attributes.items()) or None,
    )
    async with opened_session(Target(broker_addr=address)) as session:
        await session.brokers[0].ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


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
