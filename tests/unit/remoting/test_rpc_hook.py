"""Tests a program's RPC hook: the calls that it receives, and the requests that it stops."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from rocketmq_broker.protocol import FrameDecoder, RemotingCommand, ReplyTo, SerializeType, encode_response
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused, guard_of
from rocketmq_broker.remoting.errors import RemotingTimeout, StoppedByHook
from rocketmq_broker.remoting.rpc_hook import HookedRequests
from tests.unit.remoting.fake_loop import FakeLoop

HEADER = ViewMessageRequestHeader(offset=7)
PEER = "10.0.0.1:5"


class Hook:
    """A hook that records its calls and raises the error chosen by the test."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int, dict[str, str], bytes]] = []
        self.before: Exception | None = None
        self.after: Exception | None = None

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        self.seen.append(("before", address, request.code, request.ext_fields(), request.body))
        if self.before is not None:
            raise self.before

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        self.seen.append(("after", address, request.code, request.ext_fields(), response.body))
        if self.after is not None:
            raise self.after


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def loop() -> FakeLoop:
    return FakeLoop()


@pytest.fixture
def requests(loop: FakeLoop, hook: Hook) -> HookedRequests:
    requests = HookedRequests(loop.as_loop(), SerializeType.JSON, None, hook)
    requests.peer = PEER
    return requests


def decoded(frame: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().feed(frame)
    return command


def answered(requests: HookedRequests, frame: bytes, body: bytes = b"") -> None:
    reply_to = ReplyTo(decoded(frame).opaque, SerializeType.JSON)
    requests.answered(decoded(encode_response(reply_to, ResponseCode.SUCCESS, body=body)))


async def test_it_sees_a_request_and_its_answer(requests: HookedRequests, hook: Hook) -> None:
    frame, answer = requests.new(33, HEADER, b"question", 1000)
    answered(requests, frame, b"answer")
    assert (await answer).body == b"answer"
    fields = {"offset": "7"}
    assert hook.seen == [("before", PEER, 33, fields, b"question"), ("after", PEER, 33, fields, b"answer")]


async def test_it_sees_a_oneway_request_without_fields(requests: HookedRequests, hook: Hook) -> None:
    assert decoded(requests.new_oneway(33, None, b"")).is_oneway
    assert hook.seen == [("before", PEER, 33, {}, b"")]


@pytest.mark.parametrize(
    "ask",
    [lambda requests: requests.new(33, HEADER, b"", 1000), lambda requests: requests.new_oneway(33, HEADER, b"")],
    ids=["waited for", "one-way"],
)
async def test_a_request_that_it_stops_has_no_frame(
    ask: Callable[[HookedRequests], object], requests: HookedRequests, hook: Hook, loop: FakeLoop
) -> None:
    hook.before = ValueError("not today")
    with pytest.raises(StoppedByHook, match=r"^the RPC hook stopped the request: not today$"):
        ask(requests)
    assert loop.waiting == []


async def test_an_answer_that_it_stops_is_an_error_for_the_caller(requests: HookedRequests, hook: Hook) -> None:
    hook.after = ValueError()
    frame, answer = requests.new(33, HEADER, b"", 1000)
    answered(requests, frame)
    with pytest.raises(StoppedByHook, match=r"the RPC hook stopped the answer of 10\.0\.0\.1:5: ValueError"):
        await answer


async def test_it_does_not_hear_of_an_answer_that_never_came(requests: HookedRequests, hook: Hook, loop: FakeLoop) -> None:
    _, answer = requests.new(33, HEADER, b"", 1000)
    loop.pass_time(1.001)
    with pytest.raises(RemotingTimeout):
        await answer
    assert [seen[0] for seen in hook.seen] == ["before"]


async def test_an_answer_to_who_stopped_waiting_is_passed_over(requests: HookedRequests, hook: Hook) -> None:
    frame, answer = requests.new(33, HEADER, b"", 1000)
    answer.cancel()
    answered(requests, frame)
    await asyncio.sleep(0)
    assert [seen[0] for seen in hook.seen] == ["before"]


def test_what_a_peer_asks_is_refused_if_the_hook_stops_it(hook: Hook) -> None:
    class Peer:
        peer = PEER

    guard, request = guard_of(hook), RemotingCommand(code=39, opaque=1, body=b"half message")
    guard(cast(Connection, Peer()), request)
    assert hook.seen == [("before", PEER, 39, {}, b"half message")]
    hook.before = ValueError("not today")
    with pytest.raises(RequestRefused, match="the RPC hook stopped the request: not today"):
        guard(cast(Connection, Peer()), request)
