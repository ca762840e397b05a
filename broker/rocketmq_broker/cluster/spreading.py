"""New topics on all brokers: one that its first message makes would stay on the broker that got it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rocketmq_broker.admin.asking.requests import BrokerRequests, understood
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.cluster.known_topics import is_of_users
from rocketmq_broker.message import topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies import TopicConfigSerializeWrapper, TopicList
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import CreateTopicRequestHeader
from rocketmq_broker.store.tables.topic_configs import TopicConfigs

LOOK_EVERY_S = 2.0


def topics_in(stores: Iterable[Path]) -> set[str]:
    """Returns the topics of stores that no broker uses now. Raises DamagedStore."""
    names: set[str] = set()
    for store in stores:
        table = TopicConfigs(store / "config")
        table.load()
        names |= {topic.topic_name for topic in table}
    return names


class Spreading:
    """Makes each topic once at all brokers, when it appears. What operators change or delete later stays as they left it."""

    def __init__(self, known: set[str], not_these: frozenset[str]) -> None:
        """`known` were there before, `not_these` belong to one broker each: both stay where they are."""
        self._known = set(known)
        self._not_these = not_these

    async def look(self, name_server: str, brokers: Sequence[str]) -> list[str]:
        """Looks for new topics of these brokers, and makes them where they are missing. Returns their names.

        A stranger may register any name at a name server: a topic that none of the brokers has is passed over.
        `brokers` are the addresses of all brokers that should have them. Raises AdminError; the next look tries again.
        """
        async with opened_session(Target(broker_addr=name_server)) as session:
            names = await _topics_at_name_server(session.brokers[0])
        new = [name for name in sorted(names - self._known) if self._is_to_spread(name)]
        made = await _make_everywhere(new, brokers) if new else []
        self._known.update(made)
        return made

    def _is_to_spread(self, name: str) -> bool:
        return is_of_users(name, self._not_these) and not name.startswith(topics.RETRY_PREFIX)


async def _topics_at_name_server(name_server: BrokerRequests) -> set[str]:
    answer = await name_server.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, None)
    with understood(name_server.address):
        return set(TopicList.decode(answer.body).topic_list)


async def _make_everywhere(names: Sequence[str], brokers: Sequence[str]) -> list[str]:
    tables = {address: await _topics_at(address) for address in brokers}
    made = []
    for name in names:
        config = next((table[name] for table in tables.values() if name in table), None)
        if config is None:
            continue
        for address in brokers:
            if name not in tables[address]:
                await _make(config, address)
        made.append(name)
    return made


async def _topics_at(address: str) -> dict[str, TopicConfig]:
    async with opened_session(Target(broker_addr=address)) as session:
        answer = await session.brokers[0].ask(RequestCode.GET_ALL_TOPIC_CONFIG, None)
    with understood(address):
        return TopicConfigSerializeWrapper.decode(answer.body).topic_config_table


async def _make(config: TopicConfig, address: str) -> None:
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
