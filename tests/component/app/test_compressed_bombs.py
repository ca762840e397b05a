"""Tests that a compressed bomb between two orders does not prevent a broker's consumer from consuming both orders."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable

import msgspec

from rocketmq_broker.app import Broker
from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, PushConsumer
from rocketmq_broker.message import MessageExt, sysflag
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.remoting.client import RemotingClient
from tests.e2e.clients import SEND, running


async def test_a_bomb_goes_to_the_dead_letters_and_what_follows_is_consumed(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    broker, stranger, seen = await start_broker(), new_client(), list[bytes]()
    address = broker.identity.address
    for body, sys_flag in ((b"first", 0), (zlib.compress(bytes(100_000_000), 9), sysflag.COMPRESSED), (b"second", 0)):
        header = msgspec.structs.replace(SEND, sys_flag=sys_flag, properties="UNIQ_KEY\x01M\x02")
        answer = await stranger.invoke(address, RequestCode.SEND_MESSAGE_V2, header, body, timeout_ms=30_000)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.extend(message.body for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        "credits", namesrv_addr=";".join(broker.name_servers), consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer.subscribe("orders")
    consumer.register_message_listener(listener)
    async with running(consumer), asyncio.timeout(60):
        while not (  # noqa: ASYNC110 (nobody tells)
            sorted(seen) == [b"first", b"second"]
            and broker._serving is not None
            and broker._serving.context.topic_table.get("%DLQ%credits") is not None
            and all(not one.unacknowledged for one in consumer.progress)
        ):
            await asyncio.sleep(0.02)
