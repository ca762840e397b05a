"""Tests one request to one address: failures are reported as errors of the client."""

import pytest

from rocketmq_broker.client import BrokerError, BrokerUnreachable, RequestTimedOut
from rocketmq_broker.client.instance.calls import ask, ask_for_success, send_oneway
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.remoting.errors import ConnectionClosed, RemotingTimeout, TooManyRequests
from tests.unit.client.peers import Peers, answer, calls_to, success

CODE = RequestCode.VIEW_MESSAGE_BY_ID
HEADER = ViewMessageRequestHeader(offset=7)


async def test_an_answer_is_handed_on_whatever_its_code() -> None:
    peers = Peers(a=lambda request: answer(ResponseCode.SYSTEM_BUSY, remark="busy", body=request.body))
    answered = await ask(peers.as_remoting(), "a:1", CODE, HEADER, b"body", timeout_ms=5)
    assert (answered.code, answered.remark, answered.body) == (ResponseCode.SYSTEM_BUSY, "busy", b"body")
    assert peers.asked[0].timeout_ms == 5


async def test_silence_says_how_long_was_waited() -> None:
    peers = Peers(a=lambda request: RemotingTimeout("no answer"))
    with pytest.raises(RequestTimedOut, match=r"^a:1 did not answer VIEW_MESSAGE_BY_ID within 5 ms$"):
        await ask(peers.as_remoting(), "a:1", CODE, timeout_ms=5)


@pytest.mark.parametrize("error", [ConnectionClosed("it ended"), TooManyRequests("too many")])
async def test_an_error_of_the_connection_names_the_request(error: Exception) -> None:
    peers = Peers(a=lambda request: error)
    with pytest.raises(BrokerUnreachable, match=f"^VIEW_MESSAGE_BY_ID: {error}$") as unreachable:
        await ask(peers.as_remoting(), "a:1", CODE, timeout_ms=5)
    assert unreachable.value.__cause__ is error
    assert not isinstance(unreachable.value, RequestTimedOut)


async def test_a_call_that_requires_success_raises_an_error_with_the_brokers_remark() -> None:
    peers = Peers(a=lambda request: answer(ResponseCode.NO_PERMISSION, remark="go away"))
    with pytest.raises(BrokerError, match="broker a:1 answered code 16: go away") as refused:
        await ask_for_success(peers.as_remoting(), "a:1", CODE, timeout_ms=5)
    assert (refused.value.code, refused.value.remark, refused.value.address) == (ResponseCode.NO_PERMISSION, "go away", "a:1")


async def test_an_error_without_a_remark_says_so() -> None:
    peers = Peers(a=lambda request: answer(ResponseCode.SYSTEM_ERROR))
    with pytest.raises(BrokerError, match="answered code 1: no remark"):
        await ask_for_success(peers.as_remoting(), "a:1", CODE, timeout_ms=5)


async def test_a_oneway_request_wants_no_answer() -> None:
    peers = Peers(a=lambda request: success())
    await send_oneway(peers.as_remoting(), "a:1", CODE, HEADER, b"body")
    assert (peers.asked[0].is_oneway, peers.asked[0].command.body) == (True, b"body")


async def test_a_oneway_request_that_cannot_leave_says_so() -> None:
    with pytest.raises(BrokerUnreachable, match="VIEW_MESSAGE_BY_ID: no connection to a:1"):
        await send_oneway(Peers().as_remoting(), "a:1", CODE, HEADER)


async def test_a_broker_is_asked_by_its_name_wherever_it_is() -> None:
    peers = Peers(**{"broker-a": lambda request: success(body=b"found")})
    calls = calls_to(peers)
    assert (await calls.ask_master("broker-a", CODE, HEADER)).body == b"found"
    assert (await calls.ask_at("broker-a:1", CODE, HEADER, timeout_ms=7)).body == b"found"
    await calls.send_oneway_to_master("broker-a", CODE, HEADER)
    assert [(asked.address, asked.is_oneway) for asked in peers.asked] == [
        ("broker-a:1", False),
        ("broker-a:1", False),
        ("broker-a:1", True),
    ]
