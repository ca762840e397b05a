"""Tests the requests that this end sends: responses reach their callers, and one timer ends requests without a response."""

import asyncio

import pytest

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol import FrameDecoder, RemotingCommand, ReplyTo, SerializeType, encode_response
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.remoting.connections.own_requests import OwnRequests
from rocketmq_broker.remoting.errors import ConnectionClosed, RemotingTimeout, TooManyRequests
from tests.unit.remoting.fake_loop import FakeLoop

HEADER = ViewMessageRequestHeader(offset=7)


def decoded(frame: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().feed(frame)
    return command


def answer_to(request: RemotingCommand, body: bytes = b"") -> RemotingCommand:
    return decoded(encode_response(ReplyTo(request.opaque, SerializeType.JSON), 0, body=body))


@pytest.fixture
def loop() -> FakeLoop:
    return FakeLoop()


@pytest.fixture
def requests(loop: FakeLoop) -> OwnRequests:
    requests = OwnRequests(loop.as_loop(), SerializeType.JSON, None)
    requests.peer = "10.0.0.1:5"
    return requests


async def test_each_answer_finds_its_request_in_whatever_order_they_come(requests: OwnRequests) -> None:
    made = [requests.new(33, HEADER, b"", 1000) for _ in range(3)]
    commands = [decoded(frame) for frame, _ in made]
    for number in (2, 0, 1):
        requests.answered(answer_to(commands[number], b"%d" % number))
    assert [(await answer).body for _, answer in made] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("serialize_type", SerializeType)
async def test_a_request_is_written_in_the_serializer_that_was_chosen(loop: FakeLoop, serialize_type: SerializeType) -> None:
    frame, _ = OwnRequests(loop.as_loop(), serialize_type, None).new(33, HEADER, b"body", 1000)
    command = decoded(frame)
    assert (command.serialize_type, command.code, command.body, command.is_oneway) == (serialize_type, 33, b"body", False)
    assert command.decode_header(ViewMessageRequestHeader) == HEADER


async def test_a_oneway_request_keeps_nobody_waiting(requests: OwnRequests, loop: FakeLoop) -> None:
    assert decoded(requests.new_oneway(33, HEADER, b"")).is_oneway
    assert loop.waiting == []


async def test_with_credentials_every_request_is_signed(loop: FakeLoop) -> None:
    requests = OwnRequests(loop.as_loop(), SerializeType.JSON, SessionCredentials("key", "the secret"))
    frame, _ = requests.new(33, HEADER, b"", 1000)
    for command in (decoded(frame), decoded(requests.new_oneway(33, None, b""))):
        fields = command.ext_fields()
        assert fields["AccessKey"] == "key"
        assert fields["Signature"]
        assert "the secret" not in fields.values()


async def test_who_waits_too_long_hears_of_it_at_the_deadline(requests: OwnRequests, loop: FakeLoop) -> None:
    _, early = requests.new(33, HEADER, b"", 1000)
    _, late = requests.new(33, HEADER, b"", 2000)
    loop.pass_time(0.999)
    assert not early.done()
    loop.pass_time(0.002)
    with pytest.raises(RemotingTimeout, match=r"no answer from 10\.0\.0\.1:5 in time"):
        await early
    assert not late.done()
    loop.pass_time(1)
    with pytest.raises(RemotingTimeout):
        await late
    assert loop.waiting == []


async def test_a_shorter_deadline_that_comes_later_is_heard_first(requests: OwnRequests, loop: FakeLoop) -> None:
    _, long = requests.new(33, HEADER, b"", 60_000)
    _, short = requests.new(33, HEADER, b"", 10)
    assert len(loop.waiting) == 1
    loop.pass_time(0.1)
    with pytest.raises(RemotingTimeout):
        await short
    assert not long.done()


async def test_many_requests_need_one_timer(requests: OwnRequests, loop: FakeLoop) -> None:
    for _ in range(100):
        requests.new(33, HEADER, b"", 1000)
        loop.pass_time(0.001)
    assert len(loop.waiting) == 1


async def test_an_answer_that_nobody_waits_for_is_passed_over(requests: OwnRequests, loop: FakeLoop) -> None:
    frame, answer = requests.new(33, HEADER, b"", 10)
    loop.pass_time(1)
    requests.answered(answer_to(decoded(frame)))
    with pytest.raises(RemotingTimeout):
        await answer


async def test_an_answer_to_who_stopped_waiting_is_passed_over(requests: OwnRequests) -> None:
    frame, answer = requests.new(33, HEADER, b"", 10)
    answer.cancel()
    requests.answered(answer_to(decoded(frame)))
    with pytest.raises(asyncio.CancelledError):
        await answer


async def test_the_end_of_the_connection_is_told_to_all_with_its_reason(requests: OwnRequests, loop: FakeLoop) -> None:
    answers = [requests.new(33, HEADER, b"", 1000)[1] for _ in range(2)]
    answers[0].cancel()
    requests.ended("reset by peer")
    with pytest.raises(ConnectionClosed, match=r"the connection to 10.0.0.1:5 ended: reset by peer"):
        await answers[1]
    assert loop.waiting == []


async def test_more_than_may_wait_are_refused_unsent(requests: OwnRequests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests._pending, "_limit", 1)
    requests.new(33, HEADER, b"", 1000)
    with pytest.raises(TooManyRequests, match=r"10\.0\.0\.1:5: too many requests are waiting for a response: at most 1"):
        requests.new(33, HEADER, b"", 1000)
