"""Requests reach their handlers, and errors of handlers are reported."""

import logging

import pytest

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request, encode_response
from rocketmq_broker.protocol.errors import HeaderError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.dispatcher import Dispatcher, Handler, RequestRefused, Steps


class Wire:
    peer = "127.0.0.1:5555"

    def __init__(self, patience: int = 1000) -> None:
        """Creates a connection whose turn has room for `patience` requests or steps."""
        self.answers: list[RemotingCommand] = []
        self.postponed: list[RemotingCommand] | None = None
        self.patience = patience

    @property
    def must_rest(self) -> bool:
        self.patience -= 1
        return self.patience < 0

    def postpone(self, requests: list[RemotingCommand]) -> None:
        self.postponed = requests

    def send(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)


def commands(*codes: int, oneway: bool = False) -> list[RemotingCommand]:
    frames = [encode_request(code, opaque=100 + code, oneway=oneway) for code in codes]
    return FrameDecoder().feed(b"".join(frames))


def answers(dispatcher: Dispatcher, *codes: int, oneway: bool = False) -> list[tuple[int, int, str | None]]:
    wire = Wire()
    dispatcher.on_requests(wire, commands(*codes, oneway=oneway))
    return [(answer.opaque, answer.code, answer.remark) for answer in wire.answers]


def fine(connection: Wire, command: RemotingCommand) -> bytes:
    return encode_response(command, ResponseCode.SUCCESS)


def failing(error: Exception) -> Dispatcher:
    def handler(connection: Wire, command: RemotingCommand) -> bytes:
        raise error

    dispatcher = Dispatcher(refusals={OSError: ResponseCode.SERVICE_NOT_AVAILABLE})
    dispatcher.add({1: handler, 2: fine})
    return dispatcher


def test_requests_of_one_read_are_answered_in_their_order() -> None:
    dispatcher = Dispatcher()
    dispatcher.add({1: fine, 2: fine})
    assert answers(dispatcher, 2, 1) == [(102, 0, None), (101, 0, None)]


def test_an_unknown_code_is_answered_as_apache_does() -> None:
    assert answers(Dispatcher(), 9999) == [(10099, 3, " request type 9999 not supported")]


def test_a_handler_that_answers_later_is_not_answered_for() -> None:
    dispatcher = Dispatcher()
    dispatcher.add({1: lambda connection, command: None})
    assert answers(dispatcher, 1) == []


@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (RequestRefused(ResponseCode.NO_PERMISSION, "not you"), ResponseCode.NO_PERMISSION, "not you"),
        (HeaderError("topic", "the custom field <topic> is null"), ResponseCode.SYSTEM_ERROR, "the custom field <topic> is null"),
        (PermissionError("the disk is full"), ResponseCode.SERVICE_NOT_AVAILABLE, "the disk is full"),
    ],
)
def test_what_was_refused_says_why_and_the_next_request_is_served(error: Exception, code: int, remark: str) -> None:
    assert answers(failing(error), 1, 2) == [(101, code, remark), (102, 0, None)]


def test_a_mistake_of_ours_is_logged_once_and_told_without_details(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        ((_, code, remark), _) = answers(failing(KeyError("secret")), 1, 2)
    assert code == ResponseCode.SYSTEM_ERROR
    assert "secret" not in (remark or "")
    assert len(caplog.records) == 1


def test_a_one_way_request_is_never_answered() -> None:
    assert answers(failing(RequestRefused(ResponseCode.NO_PERMISSION, "not you")), 1, 2, 9999, oneway=True) == []


def test_after_stop_nothing_is_served() -> None:
    dispatcher = Dispatcher()
    dispatcher.add({1: fine})
    dispatcher.stop()
    assert answers(dispatcher, 1) == []


def test_everybody_hears_of_a_closed_connection_whatever_one_of_them_does() -> None:
    heard = []

    def broken(connection: Wire) -> None:
        raise KeyError

    dispatcher = Dispatcher(on_disconnected=[broken])
    dispatcher.add_disconnect_listener(heard.append)
    wire = Wire()
    dispatcher.on_disconnected(wire)
    assert heard == [wire]


def play_turns(dispatcher: Dispatcher, wire: Wire, patience: int) -> int:
    """Handles requests until none is postponed. Returns the number of turns."""
    turns = 0
    while (requests := wire.postponed) is not None:
        wire.postponed, wire.patience = None, patience
        dispatcher.on_requests(wire, requests)
        turns += 1
    return turns


def test_requests_that_a_turn_has_no_room_for_are_answered_in_later_turns_and_in_order() -> None:
    dispatcher, wire = Dispatcher(), Wire(patience=2)
    dispatcher.add(dict.fromkeys(range(7), fine))
    dispatcher.on_requests(wire, commands(*range(7)))
    assert [answer.opaque for answer in wire.answers] == [100, 101]
    assert play_turns(dispatcher, wire, 2) == 3
    assert [answer.opaque for answer in wire.answers] == [100 + number for number in range(7)]


def counting(steps: list[int], count: int, error: Exception | None = None) -> Handler:
    def handler(connection: Wire, command: RemotingCommand) -> Steps:
        for number in range(count):
            steps.append(number)
            yield
        if error is not None:
            raise error
        return fine(connection, command)

    return handler


def test_long_work_goes_on_in_later_turns_and_the_next_request_waits_for_its_end() -> None:
    steps: list[int] = []
    dispatcher, wire = Dispatcher(), Wire(patience=4)
    dispatcher.add({1: counting(steps, 10), 2: fine})
    dispatcher.on_requests(wire, commands(1, 2))
    assert steps == [0, 1, 2]
    assert not wire.answers
    play_turns(dispatcher, wire, 4)
    assert steps == list(range(10))
    assert [answer.opaque for answer in wire.answers] == [101, 102]


def test_what_long_work_raises_in_a_later_turn_is_answered() -> None:
    dispatcher, wire = Dispatcher(), Wire(patience=2)
    dispatcher.add({1: counting([], 5, RequestRefused(ResponseCode.SYSTEM_BUSY, "no room"))})
    dispatcher.on_requests(wire, commands(1))
    play_turns(dispatcher, wire, 2)
    assert [(answer.code, answer.remark) for answer in wire.answers] == [(ResponseCode.SYSTEM_BUSY, "no room")]


def test_long_work_ends_with_its_connection() -> None:
    steps: list[int] = []
    dispatcher, wire = Dispatcher(), Wire(patience=2)
    dispatcher.add({1: counting(steps, 100)})
    dispatcher.on_requests(wire, commands(1))
    dispatcher.on_disconnected(wire)
    wire.patience = 1000
    dispatcher.on_requests(wire, [])
    assert steps == [0]
    assert not wire.answers
