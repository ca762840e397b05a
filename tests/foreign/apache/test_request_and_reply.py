"""Tests of request and reply, listeners by topic, and responses to operators, with the Python client and Apache RocketMQ."""

from pathlib import Path

import pytest

from demo.ports import free_ports
from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    create_reply_message,
)
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.protocol.bodies.group import ConsumerConnection
from rocketmq_broker.protocol.bodies.running_info import ConsumerRunningInfo
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.group import GetConsumerConnectionListRequestHeader, GetConsumerRunningInfoRequestHeader
from tests.foreign.apache.cluster import apache_rocketmq

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]
TOPIC, GROUP = "questions", "sellers"


async def test_a_request_is_replied_to_and_its_consumer_tells_of_itself(tmp_path: Path) -> None:
    namesrv_port, broker_port = free_ports(2)
    namesrv_addr = f"127.0.0.1:{namesrv_port}"
    with apache_rocketmq(tmp_path, settings={"NAMESRV_PORT": str(namesrv_port), "BROKER_PORT": str(broker_port)}):
        producer = Producer("quotes", namesrv_addr=namesrv_addr, send_timeout_ms=30_000)
        consumer = PushConsumer(GROUP, namesrv_addr=namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)

        @consumer.consumes(TOPIC)
        async def quote(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            for message in messages:
                await producer.send(create_reply_message(message, f"{message.text} costs 7"))
            return ConsumeStatus.CONSUME_SUCCESS

        async with producer:
            await producer.create_topic(TOPIC, 1)
            async with consumer:
                reply = await producer.request(Message.of(TOPIC, "an apple"), timeout_ms=120_000)
                assert reply.text == "an apple costs 7"
                info = await running_info(f"127.0.0.1:{broker_port}")
                assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
                assert any(queue.topic == TOPIC for queue in info.mq_table)


async def running_info(broker_addr: str) -> ConsumerRunningInfo:
    """Returns the consumer's running info, requested through Apache's broker."""
    remoting = open_remoting(None, None, None, {})
    try:
        members = await remoting.invoke(
            broker_addr,
            RequestCode.GET_CONSUMER_CONNECTION_LIST,
            GetConsumerConnectionListRequestHeader(consumer_group=GROUP),
        )
        (member,) = ConsumerConnection.decode(members.body).connection_set
        header = GetConsumerRunningInfoRequestHeader(consumer_group=GROUP, client_id=member.client_id or "")
        answer = await remoting.invoke(broker_addr, RequestCode.GET_CONSUMER_RUNNING_INFO, header, timeout_ms=30_000)
        return ConsumerRunningInfo.decode(answer.body)
    finally:
        await remoting.close()
