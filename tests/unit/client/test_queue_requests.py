"""Pulling: what comes of the records a broker sends."""

import zlib
from dataclasses import replace
from typing import Any

from broker.client.queue_requests import QueueRequests
from broker.client.subscription import Subscription
from broker.message import sysflag
from broker.message.record import Record, body_crc
from broker.protocol.codes import ResponseCode, SerializeType
from broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from broker.protocol.frame import FrameDecoder
from broker.protocol.headers import PullMessageResponseHeader
from tests.unit.client.messages import QUEUE


class Calls:
    """Stands for BrokerCalls, and for the routes in it: a broker that answers every pull with these records."""

    def __init__(self, *records: Record) -> None:
        self.routes = self
        self._body = b"".join(record.encode() for record in records)

    async def address_of(self, *_: object, **__: object) -> str:
        return "127.0.0.1:10911"

    async def ask_at(self, *_: object, **__: object) -> RemotingCommand:
        header = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=3, min_offset=0, max_offset=3)
        frame = encode_response(ReplyTo(1, SerializeType.JSON), ResponseCode.SUCCESS, header, self._body)
        return FrameDecoder().feed(frame)[0]


def a_record(queue_offset: int, body: bytes, **fields: Any) -> Record:
    record = Record(
        0, body_crc(body), 0, 0, queue_offset, queue_offset * 1000, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", b""
    )
    return replace(record, **fields)


async def test_a_body_that_cannot_be_uncompressed_does_not_hold_its_queue_up() -> None:
    intact = a_record(1, zlib.compress(b"intact"), sys_flag=sysflag.COMPRESSED)
    torn, by_other_means = (
        a_record(0, b"no zlib", sys_flag=sysflag.COMPRESSED),
        a_record(2, b"lz4", sys_flag=sysflag.COMPRESSED | 1 << 8),
    )
    requests = QueueRequests(Calls(torn, intact, by_other_means))  # type: ignore[arg-type]
    pulled = await requests.pull("group", QUEUE, 0, subscription=Subscription.parse("orders", "*", 1), max_messages=32)
    assert [message.body for message in pulled.messages] == [b"no zlib", b"intact", b"lz4"]
