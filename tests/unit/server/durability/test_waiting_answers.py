"""Tests the responses to clients that wait until their message is durable."""

import pytest

from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.send import SendMessageResponseHeader
from rocketmq_broker.server.durability.completion import WaitingAnswers

HEADER = SendMessageResponseHeader(msg_id="AB", queue_id=1, queue_offset=2)


class Client:
    """A replacement for a connection, which keeps the sent frames."""

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []

    def send(self, frame: bytes) -> None:
        self.sent.append([frame])

    def send_at_once(self, frames: list[bytes]) -> None:
        self.sent.append(frames)

    @property
    def answers(self) -> list[RemotingCommand]:
        return FrameDecoder().feed(b"".join(frame for frames in self.sent for frame in frames))


def waiting(client: Client, serialize_type: SerializeType = SerializeType.JSON) -> WaitingAnswers:
    answers = WaitingAnswers()
    for opaque, position in ((1, 100), (2, 200), (3, 300)):
        answers.add(position, client, ReplyTo(opaque, serialize_type), HEADER, b"body")
    return answers


@pytest.mark.parametrize("serialize_type", SerializeType)
def test_what_is_durable_is_answered_by_success_in_one_go_and_the_rest_waits_on(serialize_type: SerializeType) -> None:
    client, other = Client(), Client()
    answers = waiting(client, serialize_type)
    answers.add(300, other, ReplyTo(4, serialize_type), None, b"")

    answers.succeed(299)
    assert [(answer.opaque, answer.code) for answer in client.answers] == [(1, ResponseCode.SUCCESS), (2, ResponseCode.SUCCESS)]
    assert [(answer.decode_header(SendMessageResponseHeader), answer.body) for answer in client.answers] == [
        (HEADER, b"body")
    ] * 2
    assert len(client.sent) == 1
    assert answers

    answers.succeed(300)
    assert [answer.opaque for answer in other.answers] == [4]
    assert not answers


def test_what_is_lost_is_answered_in_order_without_the_place_where_it_would_have_been() -> None:
    client = Client()
    answers = waiting(client)
    answers.fail_behind(100, "the disk is gone")
    assert [(answer.opaque, answer.code, answer.remark, answer.ext_fields()) for answer in client.answers] == [
        (2, ResponseCode.SERVICE_NOT_AVAILABLE, "the disk is gone", {}),
        (3, ResponseCode.SERVICE_NOT_AVAILABLE, "the disk is gone", {}),
    ]


def test_what_takes_too_long_is_answered_with_its_place_for_it_may_still_become_durable() -> None:
    client = Client()
    answers = waiting(client)
    answers.time_out(100, "the disk hangs")
    (answer,) = client.answers
    assert (answer.opaque, answer.code, answer.remark) == (1, ResponseCode.FLUSH_DISK_TIMEOUT, "the disk hangs")
    assert answer.decode_header(SendMessageResponseHeader) == HEADER
