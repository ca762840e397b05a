"""Requests the statistics and settings of a broker, its topics and its groups. Apache's brokers support these requests, too."""

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, decoding_answer_of
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.group import (
    ClientConnection,
    ConsumerConnection,
    ConsumeStats,
    GroupList,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from rocketmq_broker.protocol.bodies.topic import SubscriptionGroupWrapper, TopicList, TopicStatsTable
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rocketmq_broker.protocol.headers.topic import GetTopicStatsInfoRequestHeader
from rocketmq_broker.protocol.java_properties import parse_properties


async def topic_stats(broker: BrokerRequests, topic: str) -> TopicStatsTable | None:
    """Returns the offsets of each queue of a topic; None if the broker does not have the topic. Raises CannotAsk or Refused."""
    header = GetTopicStatsInfoRequestHeader(topic=topic)
    answer = await broker.ask(RequestCode.GET_TOPIC_STATS_INFO, header, ResponseCode.TOPIC_NOT_EXIST)
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return None
    with decoding_answer_of(broker.address):
        return TopicStatsTable.decode(answer.body)


async def system_topics(broker: BrokerRequests) -> frozenset[str]:
    """Returns the broker's system topics. Raises CannotAsk or Refused."""
    return frozenset((await broker.ask_for(TopicList.decode, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)).topic_list)


async def consumer_groups(broker: BrokerRequests) -> list[str]:
    """Returns all consumer groups of the broker, sorted. Raises CannotAsk or Refused."""
    found = await broker.ask_for(SubscriptionGroupWrapper.decode, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return sorted(found.subscription_group_table)


async def consume_stats(broker: BrokerRequests, group: str, topic: str | None = None) -> ConsumeStats:
    """Returns the offsets of a group in each queue of the topic, or of all the group's topics. Raises CannotAsk or Refused."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    return await broker.ask_for(ConsumeStats.decode, RequestCode.GET_CONSUME_STATS, header)


async def groups_of_topic(broker: BrokerRequests, topic: str) -> list[str]:
    """Returns the groups that consume a topic now or have consumed it. Raises CannotAsk or Refused."""
    header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
    return sorted((await broker.ask_for(GroupList.decode, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)).group_list)


async def consumers(broker: BrokerRequests, group: str) -> ConsumerConnection:
    """Returns the online members of a consumer group, and how their subscriptions differ. Raises CannotAsk or Refused."""
    header = GetConsumerConnectionListRequestHeader(consumer_group=group)
    answer = await broker.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header, ResponseCode.CONSUMER_NOT_ONLINE)
    if answer.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return ConsumerConnection()
    with decoding_answer_of(broker.address):
        return ConsumerConnection.decode(answer.body)


async def producers(broker: BrokerRequests, group: str) -> list[ClientConnection]:
    """Returns the online members of a producer group. Raises CannotAsk or Refused."""
    header = GetProducerConnectionListRequestHeader(producer_group=group)
    answer = await broker.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header, ResponseCode.SYSTEM_ERROR)
    if answer.code == ResponseCode.SYSTEM_ERROR:
        return []  # RocketMQ's answer if no member of the group is online
    with decoding_answer_of(broker.address):
        return ProducerConnection.decode(answer.body).connection_set


async def all_producers(broker: BrokerRequests) -> dict[str, list[ProducerInfo]]:
    """Returns the online producers, keyed by group.

    Raises CannotAsk or Refused, and NotSupported for Apache's brokers before 4.9.5.
    """
    return (await broker.ask_for(ProducerTableInfo.decode, RequestCode.GET_ALL_PRODUCER_INFO)).data


async def runtime_info(broker: BrokerRequests) -> dict[str, str]:
    """Returns the broker's runtime statistics, keyed by the names that mqadmin prints. Raises CannotAsk or Refused."""
    return (await broker.ask_for(KVTable.decode, RequestCode.GET_BROKER_RUNTIME_INFO)).table


async def settings(broker: BrokerRequests) -> dict[str, str]:
    """Returns the broker's settings, keyed by the property names of broker.conf. Raises CannotAsk or Refused."""
    return await broker.ask_for(lambda body: parse_properties(body.decode()), RequestCode.GET_BROKER_CONFIG)
