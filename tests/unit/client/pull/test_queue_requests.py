"""Tests how pulled records become messages, and that Apache's brokers keep all committed offsets."""

import asyncio
import zlib
from dataclasses import replace
from typing import Any

import pytest

from rocketmq_broker.client import BrokerError, BrokerUnreachable, MessageSelector
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageQueue, sysflag
from rocketmq_broker.message.record import Record, body_crc
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.pull import (
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from tests.unit.client.messages import QUEUE
from tests.unit.client.peers import Peers, answer, calls_to, decoded, success


def requests_for(*records: Record) -> tuple[QueueRequests, Peers]:
    """Returns requests to a broker that answers every pull with the given records."""
    header = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=3, min_offset=0, max_offset=3)
    peers = Peers(**{"broker-a": lambda request: success(header, b"".join(record.encode() for record in records))})
    return QueueRequests(calls_to(peers)), peers


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
    requests, _ = requests_for(torn, intact, by_other_means)
    pulled = await requests.pull("group", QUEUE, 0, subscription=Subscription.parse("orders", "*", 1), max_messages=32)
    assert [message.body for message in pulled.messages] == [b"no zlib", b"intact", b"lz4"]


async def test_a_body_with_another_checksum_is_handed_on_as_apaches_client_hands_it_on() -> None:
    requests, _ = requests_for(a_record(0, b"body", body_crc=1))
    pulled = await requests.pull("group", QUEUE, 0, subscription=Subscription.parse("orders", "*", 1), max_messages=32)
    assert [(message.body, message.body_crc) for message in pulled.messages] == [(b"body", 1)]


async def test_a_pull_tells_by_what_kind_of_expression_it_filters() -> None:
    requests, peers = requests_for()
    for selector in (MessageSelector.by_sql("a > 3"), MessageSelector.by_tag("a")):
        subscription = Subscription.parse("orders", selector, 1)
        await requests.pull("group", QUEUE, 0, subscription=subscription, max_messages=32, sends_expression=True)
    headers = [asked.command.decode_header(PullMessageRequestHeader) for asked in peers.asked]
    assert [(header.expression_type, header.subscription) for header in headers] == [("SQL92", "a > 3"), ("TAG", "a")]


class MasterDown:
    """A replacement for BrokerCalls and its routes while a master is down: only its slave has an address."""

    def __init__(self, code: ResponseCode, offset: int = 0) -> None:
        self.routes = self
        self._answer = code, QueryConsumerOffsetResponseHeader(offset=offset)

    async def address_of(self, broker_name: str, *, or_any: bool = False) -> str:
        if not or_any:
            raise BrokerUnreachable("the master is down")
        return "the slave"

    async def ask_at(self, address: str, code: RequestCode, header: object, *, timeout_ms: int) -> RemotingCommand:
        assert (address, code) == ("the slave", RequestCode.QUERY_CONSUMER_OFFSET)
        return decoded(answer(*self._answer))


@pytest.mark.parametrize(("code", "offset"), [(ResponseCode.SUCCESS, 7), (ResponseCode.QUERY_NOT_FOUND, None)])
async def test_the_offset_of_a_group_is_read_from_a_slave_while_the_master_is_down(
    code: ResponseCode, offset: int | None
) -> None:
    assert await QueueRequests(MasterDown(code, 7)).committed_offset("group", QUEUE) == offset  # type: ignore[arg-type]


async def test_an_offset_that_a_broker_refuses_to_tell_is_an_error() -> None:
    with pytest.raises(BrokerError):
        await QueueRequests(MasterDown(ResponseCode.SYSTEM_ERROR)).committed_offset("group", QUEUE)  # type: ignore[arg-type]


class OffsetTables:
    """A replacement for BrokerCalls whose brokers keep offsets as Apache's do. A topic's first offset creates its table."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, int]] = {}
        self.refused: set[int] = set()
        self.hanging: str | None = None

    async def ask_master(self, broker_name: str, code: int, header: UpdateConsumerOffsetRequestHeader) -> None:
        if broker_name == self.hanging:
            await asyncio.Event().wait()
        table = self.tables.get(header.topic)
        await asyncio.sleep(0)
        if header.queue_id in self.refused:
            raise BrokerUnreachable("the broker is down")
        if table is None:
            self.tables[header.topic] = {header.queue_id: header.commit_offset}
        else:
            table[header.queue_id] = header.commit_offset


def queues_at_offsets(topic: str) -> dict[MessageQueue, int]:
    return {MessageQueue(topic, "broker-a", queue_id): queue_id + 1 for queue_id in range(4)}


async def test_apaches_broker_loses_none_of_a_groups_first_offsets() -> None:
    brokers = OffsetTables()
    requests = QueueRequests(brokers)  # type: ignore[arg-type]
    await requests.commit_offsets("group", queues_at_offsets("orders") | queues_at_offsets("credits"))
    assert brokers.tables == {"orders": {0: 1, 1: 2, 2: 3, 3: 4}, "credits": {0: 1, 1: 2, 2: 3, 3: 4}}


async def test_nor_if_queues_are_given_up_one_by_one_at_the_same_time() -> None:
    brokers = OffsetTables()
    requests = QueueRequests(brokers)  # type: ignore[arg-type]
    offsets = queues_at_offsets("orders")
    await asyncio.gather(*(requests.commit_offsets("group", {queue: offset}) for queue, offset in offsets.items()))
    assert brokers.tables == {"orders": {0: 1, 1: 2, 2: 3, 3: 4}}


async def test_a_broker_that_hangs_does_not_hold_up_the_offsets_of_another() -> None:
    brokers = OffsetTables()
    brokers.hanging = "broker-b"
    offsets = queues_at_offsets("orders") | {MessageQueue("orders", "broker-b", 0): 1}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await QueueRequests(brokers).commit_offsets("group", offsets)  # type: ignore[arg-type]
    assert brokers.tables == {"orders": {0: 1, 1: 2, 2: 3, 3: 4}}


@pytest.mark.parametrize("refused", [0, 2])
async def test_one_offset_that_cannot_be_committed_does_not_keep_the_others_from_it(refused: int) -> None:
    brokers = OffsetTables()
    brokers.tables["orders"] = {}
    brokers.refused = {refused}
    with pytest.raises(BrokerUnreachable):
        await QueueRequests(brokers).commit_offsets("group", queues_at_offsets("orders"))  # type: ignore[arg-type]
    assert brokers.tables["orders"].keys() == {0, 1, 2, 3} - {refused}
