"""Tests of topic attributes, which RocketMQ 5's tools and dashboard can set."""

from collections.abc import Awaitable, Callable

import msgspec

from rocketmq_broker.app import Broker
from rocketmq_broker.protocol.bodies.topic import TopicConfigAndQueueMapping, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader, GetTopicConfigRequestHeader
from rocketmq_broker.remoting.client import RemotingClient

FIFO = {"message.type": "FIFO"}


class Tool:
    """A tool that sends requests to one broker."""

    def __init__(self, broker: Broker, client: RemotingClient) -> None:
        self._address = broker.identity.address
        self._client = client

    async def make(self, topic: str, attributes: str | None = None) -> tuple[int, str | None]:
        header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG", attributes=attributes)
        answer = await self._client.invoke(self._address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        return answer.code, answer.remark

    async def attributes(self, topic: str) -> dict[str, str] | msgspec.UnsetType:
        answer = await self._client.invoke(self._address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader(topic))
        return TopicConfigAndQueueMapping.decode(answer.body).attributes

    async def listed(self, topic: str) -> dict[str, str] | msgspec.UnsetType:
        answer = await self._client.invoke(self._address, RequestCode.GET_ALL_TOPIC_CONFIG)
        return TopicConfigSerializeWrapper.decode(answer.body).topic_config_table[topic].attributes


async def test_they_are_told_listed_kept_and_outlive_a_restart(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    broker = await start_broker()
    tool = Tool(broker, new_client())
    assert await tool.make("orders", "+message.type=FIFO") == (ResponseCode.SUCCESS, None)
    assert await tool.make("orders") == (ResponseCode.SUCCESS, None), "a change of something else keeps them"
    await broker.stop()
    tool = Tool(await start_broker(), new_client())
    assert (await tool.attributes("orders"), await tool.listed("orders")) == (FIFO, FIFO)
    assert (await tool.attributes("TBW102"), await tool.listed("TBW102")) == ({}, msgspec.UNSET)


async def test_what_cannot_be_is_refused_and_makes_no_topic(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    broker, client = await start_broker(), new_client()
    code, remark = await Tool(broker, client).make("orders", "+message.type=SOMETIMES")
    assert (code, (remark or "").partition(";")[0]) == (
        ResponseCode.SYSTEM_ERROR, "message.type=SOMETIMES: value not supported"
    )  # fmt: skip
    asked = await client.invoke(broker.identity.address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader("orders"))
    assert (asked.code, "topic[orders] not exist" in (asked.remark or "")) == (ResponseCode.TOPIC_NOT_EXIST, True)
