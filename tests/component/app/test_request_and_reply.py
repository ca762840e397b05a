"""Tests of request and reply with the Python client."""

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    IllegalMessage,
    Message,
    MessageExt,
    MessageRefused,
    NotRunning,
    Producer,
    RequestTimedOut,
    SendFailed,
    create_reply_message,
)
from rocketmq_broker.client.producer import replies
from rocketmq_broker.testing import RocketMQ


async def answering(rocketmq: RocketMQ, prefix: str = "it costs ") -> list[MessageExt]:
    """Starts a consumer that replies to each request. Returns the list of the requests that it receives."""
    producer = await rocketmq.producer("repliers")
    await producer.create_topic("quotes", 1)
    got: list[MessageExt] = []

    async def reply(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            got.append(message)
            answer = create_reply_message(message, f"{prefix}{message.text}")
            await producer.send(answer.with_properties({"colour": "green"}))
        return ConsumeStatus.CONSUME_SUCCESS

    await rocketmq.consumer("sellers", "quotes", reply)
    return got


async def test_a_request_gets_the_reply_of_its_consumer(rocketmq: RocketMQ) -> None:
    got = await answering(rocketmq)
    asking = await rocketmq.producer("buyers")
    reply = await asking.request(Message.of("quotes", "1 €", keys=["quote-1"]), timeout_ms=60_000)
    assert (reply.text, reply.topic, reply.properties["colour"]) == ("it costs 1 €", "DefaultCluster_REPLY_TOPIC", "green")
    (request,) = got
    assert (request.text, request.keys) == ("1 €", ("quote-1",))
    assert request.properties["CORRELATION_ID"] == reply.properties["CORRELATION_ID"]


async def test_replies_find_their_own_requests_also_long_ones(rocketmq: RocketMQ) -> None:
    await answering(rocketmq, prefix="so long " * 10_000)
    asking = await rocketmq.transaction_producer("buyers", _Unasked())
    first = await asking.request(Message.of("quotes", "1"), timeout_ms=60_000)
    second = await asking.request(Message.of("quotes", "2"), timeout_ms=60_000)
    assert [reply.text[-3:] for reply in (first, second)] == ["g 1", "g 2"]


class _Unasked:
    def execute_local_transaction(self, message: Message, arg: object) -> None:
        raise NotImplementedError

    def check_local_transaction(self, message: MessageExt) -> None:
        raise NotImplementedError


async def test_a_request_that_nobody_replies_to_times_out_and_is_forgotten(rocketmq: RocketMQ) -> None:
    asking = await rocketmq.producer("buyers")
    began_s = rocketmq.time.elapsed_s
    with pytest.raises(RequestTimedOut, match="no reply to the request to topic quotes in time"):
        await asking.request(Message.of("quotes", "1"), timeout_ms=20_000)
    assert 19 <= rocketmq.time.elapsed_s - began_s <= 21
    assert not asking._replies._waiting


async def test_a_late_reply_is_told_and_harms_nobody(rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture) -> None:
    asking, replier = await rocketmq.producer("buyers"), await rocketmq.producer("repliers")
    with pytest.raises(RequestTimedOut):
        await asking.request(Message.of("quotes", "1"), timeout_ms=5_000)
    (request,) = await rocketmq.messages("quotes")
    await replier.send(create_reply_message(request, "too late"))
    assert any("it came too late, or this producer sent no such request" in line for line in caplog.messages)


async def test_what_is_no_request_is_not_replied_to(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("buyers")
    await producer.send(Message.of("quotes", "1"))
    (message,) = await rocketmq.messages("quotes")
    with pytest.raises(IllegalMessage, match="is not a request"):
        create_reply_message(message, "why")


async def test_mistakes_are_refused_before_anything_is_sent(rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotRunning):
        await Producer("buyers", namesrv_addr=rocketmq.namesrv_addr).request(Message.of("quotes", "1"))
    asking = await rocketmq.producer("buyers")
    with pytest.raises(TypeError, match="message must be a Message"):
        await asking.request("1")  # type: ignore[arg-type]
    with pytest.raises(MessageRefused, match="illegal characters"):
        await asking.request(Message.of("my quotes", "1"))
    monkeypatch.setattr(replies, "MAX_WAITING", 0)
    with pytest.raises(SendFailed, match="too many requests are waiting for a reply"):
        await asking.request(Message.of("quotes", "1"))
    assert not await rocketmq.messages("quotes")
