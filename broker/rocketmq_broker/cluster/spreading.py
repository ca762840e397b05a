"""Creates new topics on all brokers, because a topic that is created by its first message exists only on one broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, decoding_answer_of
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.cluster.known_topics import is_user_topic
from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies.topic import TopicConfigSerializeWrapper, TopicList
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
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
    answer = await name_server.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, None)
    with decoding_answer_of(name_server.address):
        return set(TopicList.decode(answer.body).topic_list)


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
        answer = await session.brokers[0].ask(RequestCode.GET_ALL_TOPIC_CONFIG, None)
    with decoding_answer_of(address):
        return TopicConfigSerializeWrapper.decode(answer.body).topic_config_table


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
