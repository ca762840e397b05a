"""Reads the members of the bodies in responses of brokers and name servers. mqadmin shows only some of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryCorrectionOffsetHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rocketmq_broker.protocol.headers.name_server import (
    GetKVListByNamespaceRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
)
from rocketmq_broker.protocol.headers.topic import (
    GetTopicStatsInfoRequestHeader,
    QueryConsumeQueueRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)
from rocketmq_broker.remoting.client import RemotingClient
from tests.foreign.clients.mqadmin.names import GROUP, PRODUCERS, TOPIC

SUCCESS = 0
MAPS = {
    "brokerAddrTable", "clusterAddrTable", "data", "filterServerTable", "offsetTable", "subscriptionGroupTable",
    "subscriptionTable", "topicConfigTable",
}  # fmt: skip
"""Members whose keys are data and no members."""
ADDED_BY_ROCKETMQ_5 = {"enableActingMaster", "pullOffset"}


@dataclass(frozen=True, slots=True)
class Question:
    """A request whose response has a body."""

    code: RequestCode
    header: CommandHeader | None = None
    to_name_server: bool = False


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "route": Question(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(TOPIC), to_name_server=True),
        "clusters": Question(RequestCode.GET_BROKER_CLUSTER_INFO, to_name_server=True),
        "all topics": Question(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, to_name_server=True),
        "topics of a cluster": Question(
            RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader("DefaultCluster"), to_name_server=True
        ),
        "system topics": Question(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, to_name_server=True),
        "topics of units": Question(RequestCode.GET_UNIT_TOPIC_LIST, to_name_server=True),
        "values of a namespace": Question(
            RequestCode.GET_KVLIST_BY_NAMESPACE,
            GetKVListByNamespaceRequestHeader("ORDER_TOPIC_CONFIG"),
            to_name_server=True,
        ),
        "topic settings": Question(RequestCode.GET_ALL_TOPIC_CONFIG),
        "system topics of the broker": Question(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
        "topic statistics": Question(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader(TOPIC)),
        "groups of a topic": Question(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, QueryTopicConsumeByWhoRequestHeader(TOPIC)),
        "group settings": Question(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
        "consumers": Question(RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader(GROUP)),
        "client ids": Question(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(GROUP)),
        "producers": Question(RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader(PRODUCERS)),
        "all producers": Question(RequestCode.GET_ALL_PRODUCER_INFO),
        "consumer offsets": Question(RequestCode.GET_ALL_CONSUMER_OFFSET),
        "consume statistics": Question(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader(GROUP)),
        "consume statistics of the broker": Question(
            RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(is_order=False)
        ),
        "consume time spans": Question(RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader(TOPIC, GROUP)),
        "offsets to correct": Question(
            RequestCode.QUERY_CORRECTION_OFFSET, QueryCorrectionOffsetHeader(compare_group=GROUP, topic=TOPIC)
        ),
        "consume queue": Question(RequestCode.QUERY_CONSUME_QUEUE, QueryConsumeQueueRequestHeader(TOPIC, 0, 0, 2, GROUP)),
        "consume queue without a group": Question(
            RequestCode.QUERY_CONSUME_QUEUE, QueryConsumeQueueRequestHeader(TOPIC, 0, 0, 2)
        ),
        "figures of a topic": Question(
            RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataRequestHeader("TOPIC_PUT_NUMS", TOPIC)
        ),
    }
)
"""What is asked while the clients of the scenario are there."""


async def ask(namesrv_addr: str, broker_addr: str) -> dict[str, Any]:
    """Returns the shape of each response's body, or the code and the remark of a refusal."""
    client = RemotingClient()
    shapes: dict[str, Any] = {}
    try:
        for name, question in QUESTIONS.items():
            address = namesrv_addr if question.to_name_server else broker_addr
            answer = await client.invoke(address, question.code, question.header, timeout_ms=30_000)
            refused = (answer.code, answer.remark)
            shapes[name] = refused if answer.code != SUCCESS else shape(msgspec.json.decode(standard_json(answer.body)))
    finally:
        await client.close()
    return shapes


def shape(value: Any, *, is_map: bool = False) -> Any:
    """Returns the members of objects and the types of their values. A list or map is represented by the union of its values."""
    if isinstance(value, dict) and (is_map or all(key.isdecimal() for key in value)):
        return {"(map)": _union([shape(entry) for entry in value.values()])}
    if isinstance(value, dict):
        return {name: shape(entry, is_map=name in MAPS) for name, entry in value.items() if name not in ADDED_BY_ROCKETMQ_5}
    if isinstance(value, list):
        return ["(list)", *_union([shape(entry) for entry in value])]
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


def _union(shapes: list[Any]) -> list[Any]:
    different = {msgspec.json.encode(one, order="sorted"): one for one in shapes}
    return [different[key] for key in sorted(different)]
