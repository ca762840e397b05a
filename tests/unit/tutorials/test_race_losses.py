"""Tests the frames that the relay in front of Apache's broker drops.

These are only the next decision or the response to an order's message.
"""

import pytest

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request, encode_response
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from tutorials.race.brokers.losses import Line, Losses

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
ORDER_ID = "order-000007"


def decoded(frame: bytes) -> RemotingCommand:
    [command] = FrameDecoder().feed(frame)
    return command


def end_transaction(bits: int) -> RemotingCommand:
    header = EndTransactionRequestHeader(
        producer_group="shop", tran_state_table_offset=0, commit_log_offset=0, commit_or_rollback=bits, msg_id="1"
    )
    return decoded(encode_request(RequestCode.END_TRANSACTION, header, opaque=1, oneway=True))


def send(opaque: int, order_id: str = ORDER_ID) -> RemotingCommand:
    return decoded(encode_request(RequestCode.SEND_MESSAGE_V2, body=b'{"order_id": "%s"}' % order_id.encode(), opaque=opaque))


def answer(request: RemotingCommand) -> RemotingCommand:
    return decoded(encode_response(request, ResponseCode.SUCCESS))


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.mark.parametrize("bits", [COMMIT, ROLLBACK])
def test_the_next_decision_is_lost_once_on_whatever_connection(losses: Losses, bits: int) -> None:
    losses.decisions_to_lose = 1
    one, other = Line(losses), Line(losses)
    assert other.reaches_broker(send(1))
    assert not one.reaches_broker(end_transaction(bits))
    assert other.reaches_broker(end_transaction(bits))


def test_unknown_is_no_decision_and_arrives(losses: Losses) -> None:
    losses.decisions_to_lose = 1
    assert Line(losses).reaches_broker(end_transaction(UNKNOWN))
    assert losses.decisions_to_lose == 1


def test_the_next_message_of_an_order_arrives_and_its_answer_does_not(losses: Losses) -> None:
    losses.answers_to_lose.add(ORDER_ID)
    line = Line(losses)
    pull = decoded(encode_request(RequestCode.PULL_MESSAGE, opaque=1))
    sends = [send(2, "order-000006"), send(3), send(4)]
    assert [line.reaches_broker(request) for request in (pull, *sends)] == [True] * 4
    assert [line.reaches_client(answer(request)) for request in (pull, *sends)] == [True, True, False, True]


def test_an_answer_of_the_client_is_no_send_whatever_its_code(losses: Losses) -> None:
    losses.answers_to_lose.add(ORDER_ID)
    flush_disk_timeout = decoded(encode_response(send(7), ResponseCode.FLUSH_DISK_TIMEOUT))
    assert flush_disk_timeout.code == RequestCode.SEND_MESSAGE
    assert Line(losses).reaches_broker(flush_disk_timeout)
    assert losses.answers_to_lose == {ORDER_ID}


def test_an_answer_is_lost_on_its_own_connection_alone(losses: Losses) -> None:
    losses.answers_to_lose.add(ORDER_ID)
    one, other = Line(losses), Line(losses)
    assert one.reaches_broker(send(1))
    assert other.reaches_client(answer(send(1)))
    assert not one.reaches_client(answer(send(1)))
