"""Tests that topics keep RocketMQ 5's attributes when their store is moved between brokers."""

from pathlib import Path

import pytest

from demo.processes import Processes
from rocketmq_broker.protocol.bodies.topic import TopicConfigAndQueueMapping, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader, GetTopicConfigRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.foreign.apache.places import Place, Running

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


async def ask(broker: Running, code: RequestCode, header: CommandHeader | None = None) -> RemotingCommand:
    client = RemotingClient()
    try:
        answer = await client.invoke(broker.broker_addr, code, header, timeout_ms=30_000)
    finally:
        await client.close()
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer


async def make(broker: Running, topic: str, message_type: str) -> None:
    header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG", attributes=f"+message.type={message_type}")
    await ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def told(broker: Running, topic: str) -> object:
    answer = await ask(broker, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader(topic))
    return TopicConfigAndQueueMapping.decode(answer.body).attributes


@pytest.mark.release
async def test_attributes_go_to_rocketmq_5_and_back_and_4_9_7_opens_a_store_that_has_some(
    processes: Processes, tmp_path: Path
) -> None:
    place = Place(tmp_path, processes)
    with place.serve("ours") as ours:
        await make(ours, "orders", "FIFO")
    with place.serve("apache", version="5.3.3") as apache_5:
        assert await told(apache_5, "orders") == {"message.type": "FIFO"}
        await make(apache_5, "payments", "TRANSACTION")
    with place.serve("ours") as ours:
        assert await told(ours, "orders") == {"message.type": "FIFO"}
        assert await told(ours, "payments") == {"message.type": "TRANSACTION"}
    with place.serve("apache", version="4.9.7", is_last=True) as apache_4:
        topics = TopicConfigSerializeWrapper.decode((await ask(apache_4, RequestCode.GET_ALL_TOPIC_CONFIG)).body)
        assert {"orders", "payments"} <= topics.topic_config_table.keys()
