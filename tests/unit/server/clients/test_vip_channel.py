"""Tests which requests the VIP channel serves and refuses."""

import pytest

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.server.clients.vip_channel import VipChannel
from tests.unit.remoting.test_dispatcher import Wire, commands


def fine(connection: Wire, command: RemotingCommand) -> bytes:
    return encode_response(command, ResponseCode.SUCCESS)


@pytest.fixture
def dispatcher() -> Dispatcher:
    dispatcher = Dispatcher()
    dispatcher.add(dict.fromkeys((RequestCode.SEND_MESSAGE, RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE), fine))
    return dispatcher


def answers(dispatcher: Dispatcher, *codes: int, oneway: bool = False) -> list[tuple[int, str | None]]:
    wire = Wire()
    VipChannel(dispatcher).on_requests(wire, commands(*codes, oneway=oneway))
    return [(answer.code, answer.remark) for answer in wire.answers]


@pytest.mark.parametrize("pull", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_a_pull_is_refused_as_apaches_broker_refuses_it(dispatcher: Dispatcher, pull: RequestCode) -> None:
    refused = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {pull} not supported")
    assert answers(dispatcher, pull) == [refused]


def test_what_comes_with_a_pull_is_served(dispatcher: Dispatcher) -> None:
    codes = {code for code, _ in answers(dispatcher, RequestCode.PULL_MESSAGE, RequestCode.SEND_MESSAGE)}
    assert codes == {ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.SUCCESS}


def test_a_one_way_pull_is_not_answered(dispatcher: Dispatcher) -> None:
    assert answers(dispatcher, RequestCode.PULL_MESSAGE, oneway=True) == []


def test_a_request_that_the_broker_learns_to_serve_later_is_served(dispatcher: Dispatcher) -> None:
    channel = VipChannel(dispatcher)
    dispatcher.add({RequestCode.HEART_BEAT: fine})
    wire = Wire()
    channel.on_requests(wire, commands(RequestCode.HEART_BEAT))
    assert [answer.code for answer in wire.answers] == [ResponseCode.SUCCESS]


def test_who_keeps_something_for_a_connection_hears_that_it_is_gone(dispatcher: Dispatcher) -> None:
    gone: list[object] = []
    dispatcher.add_disconnect_listener(gone.append)
    wire = Wire()
    VipChannel(dispatcher).on_disconnected(wire)
    assert gone == [wire]
