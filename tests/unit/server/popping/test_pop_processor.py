"""Tests that an acknowledgement of a popped message gets its response when its record is durable, and not before."""

from types import SimpleNamespace
from typing import Any

import pytest

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import encode_request
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pop import AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.server.popping.pop_processor import PopProcessor
from tests.unit.server.conftest import Wire

HANDLE = "7 1700000000000 60000 0 0 broker-a 3 9"
END_POSITION = 1234


class Deliveries:
    def settle(self, group: str, topic: str, handle: object) -> int:
        return END_POSITION

    def renew(self, group: str, topic: str, handle: Any, invisible_ms: int) -> tuple[Any, int]:
        return handle, END_POSITION


class Disk:
    """Records the positions that responses wait for, and never becomes durable."""

    def __init__(self) -> None:
        self.waited_for: list[int] = []

    def after_durable(self, position: int, *_: object) -> None:
        self.waited_for.append(position)


@pytest.mark.parametrize(
    ("code", "header"),
    [
        (RequestCode.ACK_MESSAGE, AckMessageRequestHeader("credits", "orders", 3, HANDLE, 9)),
        (RequestCode.CHANGE_MESSAGE_INVISIBLETIME, ChangeInvisibleTimeRequestHeader("credits", "orders", 3, HANDLE, 9, 60_000)),
    ],
)
def test_the_response_waits_until_the_record_is_durable(code: int, header: Any) -> None:
    disk, wire, dispatcher = Disk(), Wire(), Dispatcher(refusals={})
    popping: Any = SimpleNamespace(deliveries=Deliveries())
    filters: Any = None
    dispatcher.add(PopProcessor(popping, filters, disk).handlers)
    dispatcher.on_requests(wire, FrameDecoder().feed(encode_request(code, header, opaque=1)))
    assert (disk.waited_for, wire.answers) == ([END_POSITION], [])
