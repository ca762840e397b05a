"""Tests requests that wait for a reply, and replies without a waiting request."""

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any, cast

import pytest

from rocketmq_broker.client import IllegalMessage, Message, RequestTimedOut, SendFailed, create_reply_message
from rocketmq_broker.client.producer import replies
from rocketmq_broker.client.producer.replies import PendingReplies
from rocketmq_broker.message import properties as props
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.headers.send import ReplyMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused
from tests.unit.client.messages import message
from tests.unit.client.peers import decoded

NOBODY = cast(Connection, None)
"""The handler looks at no connection."""


def pushed(correlation_id: str, body: bytes = b"7", **fields: Any) -> RemotingCommand:
    """Returns a reply as a broker pushes it."""
    named = {props.CORRELATION_ID: correlation_id, props.MESSAGE_TYPE: props.REPLY}
    values = {
        "producer_group": "p", "topic": "c_REPLY_TOPIC", "default_topic": "TBW102", "default_topic_queue_nums": 4, "queue_id": 0,
        "sys_flag": 0, "born_timestamp": 1, "flag": 0, "properties": props.encode(named).decode(), "born_host": "127.0.0.1:5",
        "store_host": "/127.0.0.1:10911", "store_timestamp": 2,
    } | fields  # fmt: skip
    header = ReplyMessageRequestHeader(**values)
    return decoded(encode_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header, body, opaque=9))


def arrive(pending: PendingReplies, command: RemotingCommand) -> RemotingCommand:
    """Delivers a reply. Returns the response to the broker."""
    handler = cast(Callable[[Connection, RemotingCommand], bytes], pending.handlers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT])
    return decoded(handler(NOBODY, command))


def request(pending: PendingReplies, timeout_ms: int = 60_000) -> tuple[str, Message]:
    return pending.begin(Message.of("questions", b"?"), "client-1", timeout_ms)


async def test_a_request_names_its_client_and_its_time_and_gets_the_reply_of_its_own_number() -> None:
    pending = PendingReplies(os.urandom)
    first, asked = request(pending, 5000)
    second, _ = request(pending)
    assert first != second
    assert asked.properties[props.CORRELATION_ID] == first
    assert (asked.properties[props.REPLY_TO_CLIENT], asked.properties[props.MESSAGE_TTL]) == ("client-1", "5000")
    assert arrive(pending, pushed(second, b"of the second")).code == ResponseCode.SUCCESS
    assert arrive(pending, pushed(first, b"of the first")).code == ResponseCode.SUCCESS
    assert (await pending.reply(first, "questions", 1000)).body == b"of the first"
    assert (await pending.reply(second, "questions", 1000)).body == b"of the second"


async def test_a_reply_says_where_it_was_born_and_stored() -> None:
    pending = PendingReplies(os.urandom)
    one, _ = request(pending)
    arrive(pending, pushed(one))
    reply = await pending.reply(one, "questions", 1000)
    assert (reply.born_host, reply.store_host, reply.store_timestamp) == ("127.0.0.1:5", "127.0.0.1:10911", 2)


@pytest.mark.parametrize("host", ["", "here", "here:5", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999999999", "[::1]:5"])
async def test_an_address_that_is_none_is_no_reason_to_lose_a_reply(host: str) -> None:
    pending = PendingReplies(os.urandom)
    one, _ = request(pending)
    arrive(pending, pushed(one, born_host=host))
    assert (await pending.reply(one, "questions", 1000)).born_host == "0.0.0.0:0"


async def test_a_reply_for_nobody_is_logged_and_taken_off_the_brokers_hands(caplog: pytest.LogCaptureFixture) -> None:
    pending = PendingReplies(os.urandom)
    with caplog.at_level(logging.WARNING):
        assert arrive(pending, pushed("unknown")).code == ResponseCode.SUCCESS
    assert "ignored a reply from 127.0.0.1:5: it came too late, or this producer sent no such request" in caplog.text


async def test_a_second_reply_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    pending = PendingReplies(os.urandom)
    one, _ = request(pending)
    arrive(pending, pushed(one, b"first"))
    arrive(pending, pushed(one, b"second"))
    assert (await pending.reply(one, "questions", 1000)).body == b"first"
    assert "came too late" in caplog.text


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "t" * 300},
        {"properties": "x" * 70_000},
        {"queue_id": 0, "sys_flag": 1},  # compressed, it says
    ],
    ids=["topic", "properties", "body"],
)
async def test_a_reply_that_no_record_can_hold_is_refused(fields: dict[str, Any]) -> None:
    pending = PendingReplies(os.urandom)
    with pytest.raises(RequestRefused, match="the reply cannot be read"):
        arrive(pending, pushed("any", **fields))


async def test_nobody_replies_in_time() -> None:
    pending = PendingReplies(os.urandom)
    one, _ = request(pending)
    with pytest.raises(RequestTimedOut, match="no reply to the request to topic questions in time"):
        await pending.reply(one, "questions", 1)


async def test_what_nobody_waits_for_any_more_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_WAITING", 1)
    pending = PendingReplies(os.urandom)
    one, _ = request(pending)
    with pytest.raises(SendFailed, match="too many requests are waiting for a reply: at most 1"):
        request(pending)
    pending.end(one)
    request(pending)
    await asyncio.sleep(0)


def test_a_reply_goes_to_the_cluster_and_the_client_that_asked() -> None:
    asked = message(0, properties={"CLUSTER": "c", "REPLY_TO_CLIENT": "client-1", "CORRELATION_ID": "one", "TTL": "5000"})
    reply = create_reply_message(asked, "seven")
    assert (reply.topic, reply.body) == ("c_REPLY_TOPIC", b"seven")
    assert dict(reply.properties) == {
        "MSG_TYPE": "reply", "CORRELATION_ID": "one", "REPLY_TO_CLIENT": "client-1", "TTL": "5000",
    }  # fmt: skip


@pytest.mark.parametrize("named", [{}, {"CLUSTER": "c"}, {"REPLY_TO_CLIENT": "client-1"}])
def test_who_is_asked_nothing_cannot_reply(named: dict[str, str]) -> None:
    with pytest.raises(IllegalMessage, match="is not a request"):
        create_reply_message(message(0, properties=named), b"7")
