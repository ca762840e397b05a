"""Tests how a producer counts the discarded messages of its group. Functions replace the brokers."""

import pytest

from rocketmq_broker.client.errors import BrokerError
from rocketmq_broker.client.instance.parked_requests import ParkedRequests
from rocketmq_broker.protocol.bodies.parked_admin import ParkedCounts
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetResponseHeader, GetMinOffsetResponseHeader
from tests.unit.client.peers import Peer, Peers, calls_to


async def discarded(broker: Peer) -> int:
    return await ParkedRequests(calls_to(Peers(a=broker))).discarded("a:1", "order_service")


def apaches(first: int, end: int) -> Peer:
    def answer(request: RemotingCommand) -> bytes:
        if request.code == RequestCode.GET_MIN_OFFSET:
            return encode_response(request, ResponseCode.SUCCESS, GetMinOffsetResponseHeader(offset=first))
        if request.code == RequestCode.GET_MAX_OFFSET:
            return encode_response(request, ResponseCode.SUCCESS, GetMaxOffsetResponseHeader(offset=end))
        return encode_response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="no")

    return answer


async def test_our_broker_tells_how_many_of_the_group_wait() -> None:
    def answer(request: RemotingCommand) -> bytes:
        assert request.code == AdminRequestCode.COUNT_PARKED_MESSAGES
        body = ParkedCounts(discarded={"order_service": 2, "others": 5}, dead_letters={"order_service": 9})
        return encode_response(request, ResponseCode.SUCCESS, body=body.encode())

    assert await discarded(answer) == 2


async def test_a_group_of_which_nothing_was_discarded_has_none() -> None:
    assert await discarded(lambda request: encode_response(request, ResponseCode.SUCCESS, body=ParkedCounts().encode())) == 0


@pytest.mark.parametrize(("first", "end", "count"), [(0, 0, 0), (3, 5, 2), (-1, 0, 0)])
async def test_apaches_broker_tells_how_many_are_stored(first: int, end: int, count: int) -> None:
    assert await discarded(apaches(first, end)) == count


@pytest.mark.parametrize("body", [b"<html>", b"[]"])
async def test_an_answer_that_cannot_be_understood_is_an_error_of_the_broker(body: bytes) -> None:
    with pytest.raises(BrokerError, match="cannot be decoded"):
        await discarded(lambda request: encode_response(request, ResponseCode.SUCCESS, body=body))


async def test_a_refusal_is_passed_on() -> None:
    with pytest.raises(BrokerError, match="not now"):
        await discarded(lambda request: encode_response(request, ResponseCode.SYSTEM_ERROR, remark="not now"))
