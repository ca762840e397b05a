"""Tests of pop requests as RocketMQ 5's clients send them."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rocketmq_broker.client import Message, Producer
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, MessageModel
from rocketmq_broker.protocol.bodies.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    MessageRequestMode,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from rocketmq_broker.protocol.codes import PopResponseCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    NotificationResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.testing import RocketMQ
from tests.component.server.popping.conftest import Send


class Client5:
    """A client of RocketMQ 5."""

    def __init__(self, rocketmq: RocketMQ) -> None:
        self._rocketmq = rocketmq
        self.remoting = RemotingClient(Dispatcher())

    async def ask(self, code: int, header: Any = None, body: bytes = b"") -> RemotingCommand:
        return await self.remoting.invoke(self._rocketmq.broker_addr, code, header, body, timeout_ms=60_000)

    async def pop(self, **changes: Any) -> RemotingCommand:
        fields = {"consumer_group": "credits", "topic": "orders", "queue_id": -1, "max_msg_nums": 32, "poll_time": 0}
        header = PopMessageRequestHeader(**{**fields, "invisible_time": 10_000, "init_mode": 1, **changes})
        return await self.ask(RequestCode.POP_MESSAGE, header)

    async def is_there_one(self, **changes: Any) -> bool:
        fields = {"consumer_group": "credits", "topic": "orders", "queue_id": -1, "poll_time": 0, **changes}
        answer = await self.ask(RequestCode.NOTIFICATION, NotificationRequestHeader(**fields))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        header = answer.decode_header(NotificationResponseHeader)
        assert not header.polling_full
        return header.has_msg

    async def ack(self, extra_info: str, offset: int = 0, topic: str = "orders") -> ResponseCode:
        header = AckMessageRequestHeader("credits", topic, 0, extra_info, offset)
        return ResponseCode((await self.ask(RequestCode.ACK_MESSAGE, header)).code)


@pytest.fixture
async def client(rocketmq: RocketMQ, producer: Producer) -> AsyncIterator[Client5]:
    client = Client5(rocketmq)
    yield client
    await client.remoting.close()


def popped(answer: RemotingCommand) -> list[bytes]:
    assert answer.code == ResponseCode.SUCCESS
    return [record.body for record in decode_records(answer.body)]


def handle(answer: RemotingCommand, *, start: int = 0, retry: int = 0) -> str:
    """Returns the receipt handle as a client builds it, without the message's offset."""
    header = answer.decode_header(PopMessageResponseHeader)
    return f"{start} {header.pop_time} {header.invisible_time} {header.revive_qid} {retry} broker-a 0"


async def test_an_answer_holds_the_parts_of_each_receipt_handle(client: Client5, send: Send) -> None:
    await send("1", "2", queue_id=0)
    await send("3", queue_id=1)
    answer = await client.pop(queue_id=0)
    header = answer.decode_header(PopMessageResponseHeader)
    assert popped(answer) == [b"1", b"2"]
    assert (header.start_offset_info, header.msg_offset_info) == ("0 0 0", "0 0 0,1")
    assert (header.invisible_time, header.revive_qid, header.rest_num, header.order_count_info) == (10_000, 0, 0, None)
    header = (await client.pop()).decode_header(PopMessageResponseHeader)
    assert (header.start_offset_info, header.msg_offset_info) == ("0 1 0", "0 1 0")


async def test_a_retried_message_is_marked_and_acknowledged_in_its_retry_topic(
    rocketmq: RocketMQ, client: Client5, send: Send
) -> None:
    await send("1")
    await client.pop()
    await rocketmq.advance(seconds=11)
    answer = await client.pop()
    (record,) = decode_records(answer.body)
    assert (record.topic, record.reconsume_times) == (b"%RETRY%credits_orders", 1)
    assert answer.decode_header(PopMessageResponseHeader).msg_offset_info == "1 0 0"
    assert await client.ack(handle(answer, retry=1) + " 0", topic="%RETRY%credits_orders") == ResponseCode.SUCCESS
    await rocketmq.advance(seconds=11)
    assert (await client.pop()).code == PopResponseCode.POLLING_TIMEOUT


async def test_an_orderly_pop_says_how_often_its_messages_came(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    await send("1")
    assert (await client.pop(order=True)).decode_header(PopMessageResponseHeader).order_count_info == "0 0 0"
    await rocketmq.advance(seconds=11)
    header = (await client.pop(order=True)).decode_header(PopMessageResponseHeader)
    assert (header.order_count_info, header.revive_qid) == ("0 0 1", 999)


async def test_a_pop_waits_for_its_poll_time(client: Client5, send: Send) -> None:
    waiting = asyncio.create_task(client.pop(poll_time=30_000, invisible_time=60_000))
    await asyncio.sleep(1)
    await send("1")
    assert popped(await waiting) == [b"1"]
    answer = await client.pop(poll_time=30_000)
    assert answer.code == PopResponseCode.POLLING_TIMEOUT
    assert answer.decode_header(PopMessageResponseHeader).rest_num == 0


async def test_the_pops_of_a_client_that_left_are_forgotten(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    waiting = asyncio.create_task(client.pop(poll_time=30_000))
    await asyncio.sleep(1)
    await client.remoting.close()
    await asyncio.wait([waiting])
    await rocketmq.settle()
    assert rocketmq._broker._serving.popping.waiting.count == 0


async def test_a_message_is_acknowledged_once_and_not_after_its_time(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    await send("1", "2")
    mark = handle(await client.pop())
    assert await client.ack(f"{mark} 0") == ResponseCode.SUCCESS
    assert await client.ack(mark, offset=0) == ResponseCode.SUCCESS
    await rocketmq.advance(seconds=11)
    assert await client.ack(f"{mark} 1", offset=1) == ResponseCode.NO_MESSAGE
    assert await client.ack("nonsense") == ResponseCode.MESSAGE_ILLEGAL


async def test_the_invisible_time_is_changed(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    await send("1")
    change = ChangeInvisibleTimeRequestHeader("credits", "orders", 0, handle(await client.pop()) + " 0", 0, 60_000)
    answer = await client.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change)
    header = answer.decode_header(ChangeInvisibleTimeResponseHeader)
    assert (answer.code, header.invisible_time, header.revive_qid) == (ResponseCode.SUCCESS, 60_000, 0)
    await rocketmq.advance(seconds=30)
    assert (await client.pop()).code == PopResponseCode.POLLING_TIMEOUT
    assert await client.ack(f"0 {header.pop_time} {header.invisible_time} 0 0 broker-a 0 0") == ResponseCode.SUCCESS
    assert (await client.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change)).code == ResponseCode.NO_MESSAGE


async def test_a_batch_of_messages_is_acknowledged(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    await send("1", "2", "3", "4")
    header = (await client.pop()).decode_header(PopMessageResponseHeader)
    ack = BatchAck("credits", "orders", 0, 0, 0, header.pop_time, header.invisible_time, base64.b64encode(b"\x0b").decode())
    body = BatchAckMessageRequestBody("broker-a", [ack]).encode()
    assert (await client.ask(RequestCode.BATCH_ACK_MESSAGE, None, body)).code == ResponseCode.SUCCESS
    await rocketmq.advance(seconds=11)
    assert popped(await client.pop()) == [b"3"]
    assert (await client.ask(RequestCode.BATCH_ACK_MESSAGE, None, body)).code == ResponseCode.SUCCESS


async def test_only_what_an_expression_selects_comes(rocketmq: RocketMQ, client: Client5, producer: Producer) -> None:
    for amount in "5", "50":
        await producer.send(Message.of("orders", amount, user_properties={"amount": amount}))
    refused = await client.pop(exp="amount > 10", exp_type="SQL92")
    assert refused.code == ResponseCode.SYSTEM_ERROR, "enablePropertyFilter is off by default"
    assert (await client.pop(exp="||", exp_type="TAG")).code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


async def assignment(client: Client5, topic: str = "orders", strategy: str = "AVG", **changes: Any) -> Any:
    wanted = QueryAssignmentRequestBody(topic, "credits", "c1", strategy, **changes)
    answer = await client.ask(RequestCode.QUERY_ASSIGNMENT, None, wanted.encode())
    assert answer.code == ResponseCode.SUCCESS
    found = QueryAssignmentResponseBody.decode(answer.body).message_queue_assignments
    return None if found is None else [(one.message_queue.queue_id, one.mode) for one in found]


async def set_mode(client: Client5, mode: MessageRequestMode, topic: str = "orders", share: int = 0) -> int:
    body = SetMessageRequestModeRequestBody(topic, "credits", mode, share).encode()
    return (await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)).code


async def test_the_broker_divides_the_queues_and_says_whether_to_pull_or_to_pop(rocketmq: RocketMQ, client: Client5) -> None:
    assert await assignment(client) is None, "nobody of the group is known"
    others = [Client5(rocketmq), Client5(rocketmq)]
    for member, client_id in zip((client, *others), ("c1", "c2", "c3"), strict=True):
        heartbeat = HeartbeatData(client_id=client_id, consumer_data_set=[ConsumerData(group_name="credits")])
        assert (await member.ask(RequestCode.HEART_BEAT, None, heartbeat.encode())).code == ResponseCode.SUCCESS
    pull, pop = MessageRequestMode.PULL, MessageRequestMode.POP
    assert await assignment(client) == [(0, pull)]
    assert await assignment(client, strategy="AVG_BY_CIRCLE") == [(0, pull)]
    assert await assignment(client, strategy="MACHINE_ROOM") is None
    assert await assignment(client, "no-such-topic") is None
    assert await assignment(client, message_model=MessageModel.BROADCASTING) == [(0, pull), (1, pull)]
    assert await set_mode(client, pop) == ResponseCode.SUCCESS
    assert await assignment(client) == [(-1, pop)]
    assert await set_mode(client, pop, share=1) == ResponseCode.SUCCESS
    assert await assignment(client) == [(0, pop)], "three members, two queues"
    await rocketmq.restart()
    heartbeat = HeartbeatData(client_id="c1", consumer_data_set=[ConsumerData(group_name="credits")])
    await client.ask(RequestCode.HEART_BEAT, None, heartbeat.encode())
    assert await assignment(client) == [(-1, pop)], "the mode survives"
    for member in others:
        await member.remoting.close()


async def test_a_mode_is_set_only_where_it_can_be(client: Client5) -> None:
    assert await set_mode(client, MessageRequestMode.POP, "no-such-topic") == ResponseCode.TOPIC_NOT_EXIST
    assert await set_mode(client, MessageRequestMode.POP, "%RETRY%credits") == ResponseCode.NO_PERMISSION


async def test_a_pop_that_would_read_the_retries_of_another_group_is_refused(client: Client5) -> None:
    heartbeat = HeartbeatData(client_id="c1", consumer_data_set=[ConsumerData(group_name="credits_orders")])
    await client.ask(RequestCode.HEART_BEAT, None, heartbeat.encode())
    answer = await client.pop()
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        "the retry topic %RETRY%credits_orders belongs to another group; use another group name",
    )


async def test_a_client_is_told_whether_there_is_something_to_pop(client: Client5, send: Send) -> None:
    assert not await client.is_there_one()
    await send("1")
    assert await client.is_there_one()
    assert await client.is_there_one(queue_id=0)
    assert not await client.is_there_one(queue_id=1)
    assert popped(await client.pop()) == [b"1"]  # the questions took nothing
    assert not await client.is_there_one()


async def test_the_question_waits_for_a_message_or_for_its_poll_time(client: Client5, send: Send) -> None:
    waiting = asyncio.create_task(client.is_there_one(poll_time=30_000))
    await asyncio.sleep(1)
    assert not waiting.done()
    await send("1")
    assert await waiting
    assert popped(await client.pop()) == [b"1"]
    assert not await client.is_there_one(poll_time=5_000)


async def test_a_message_that_comes_again_is_worth_telling(rocketmq: RocketMQ, client: Client5, send: Send) -> None:
    await send("1")
    await client.pop()
    waiting = asyncio.create_task(client.is_there_one(poll_time=60_000))
    await asyncio.sleep(1)
    await rocketmq.advance(seconds=11)
    assert await waiting


async def test_a_locked_queue_has_nothing_but_for_the_attempt_that_locked_it(
    rocketmq: RocketMQ, client: Client5, send: Send
) -> None:
    await send("1", "2")
    assert popped(await client.pop(order=True, max_msg_nums=1, attempt_id="a")) == [b"1"]
    assert not await client.is_there_one(order=True)
    assert not await client.is_there_one(order=True, attempt_id="b")
    assert await client.is_there_one(order=True, attempt_id="a")
    await rocketmq.advance(seconds=11)
    assert await client.is_there_one(order=True)


async def test_a_question_about_no_topic_or_no_queue_is_refused(client: Client5) -> None:
    for wrong, code in (({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST), ({"queue_id": 9}, ResponseCode.SYSTEM_ERROR)):
        fields = {"consumer_group": "credits", "topic": "orders", "queue_id": -1, "poll_time": 0, **wrong}
        assert (await client.ask(RequestCode.NOTIFICATION, NotificationRequestHeader(**fields))).code == code
