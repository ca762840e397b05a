"""Tests that a clock four days ahead does not expire files, clients, registrations or waiting messages."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.world import World, in_world
from tests.component.app.conftest import small_broker
from tests.e2e.clients import SEND
from tests.unit.server.conftest import PULL

FOUR_DAYS_MS = 4 * 24 * 3_600_000
EVERY_HOUR = ";".join(f"{hour:02d}" for hour in range(24))


class Clock:
    """A clock that returns the real time until the test sets it forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ms * 1_000_000


class Running:
    """A broker whose clock the test can set, and a client.

    `do_what_timers_do` runs the work of the broker's timers at once.
    """

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self.broker = broker
        self.client = RemotingClient()
        self._clock = clock

    async def ask(self, code: int, header: object = None, body: bytes = b"") -> int:
        address = self.broker.identity.address
        return (await self.client.invoke(address, code, header, body, timeout_ms=20_000)).code  # type: ignore[arg-type]

    def set_clock(self, ahead_ms: int) -> None:
        self._clock.ahead_ms = ahead_ms
        self.broker._clock.follow()

    async def do_what_timers_do(self) -> None:
        serving = self.broker._serving
        assert serving is not None
        serving.context.clients.processor.close_expired()
        serving.delayed_delivery.deliver_due()
        serving.transactions.check_service.handle_due(self.broker._clock())
        await serving.cleaner.clean()
        assert self.broker._name_server is not None
        self.broker._name_server._expire()


@asynccontextmanager
async def running_broker(store: Path, clock: Clock) -> AsyncIterator[Running]:
    with in_world(World(wall_ns=clock)):
        broker = small_broker(store, delete_when=EVERY_HOUR)
    await broker.start()
    running = Running(broker, clock)
    yield running
    await running.client.close()
    await broker.stop()


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with running_broker(tmp_path, Clock()) as running:
        yield running


async def test_nothing_is_deleted_that_expired_only_by_a_clock_that_was_set(running: Running, tmp_path: Path) -> None:
    for _ in range(4):
        assert await running.ask(RequestCode.SEND_MESSAGE_V2, SEND, bytes(600_000)) == ResponseCode.SUCCESS
    segments = sorted((tmp_path / "commitlog").iterdir())
    assert len(segments) > 2
    running.set_clock(FOUR_DAYS_MS)
    await running.do_what_timers_do()
    assert await running.ask(RequestCode.DELETE_EXPIRED_COMMITLOG) == ResponseCode.SUCCESS
    await running.do_what_timers_do()
    assert set(segments) <= set((tmp_path / "commitlog").iterdir())


@pytest.mark.parametrize("restarts", [1, 2])
async def test_a_restart_after_messages_by_the_wrong_clock_does_not_believe_it(tmp_path: Path, restarts: int) -> None:
    clock = Clock()
    async with running_broker(tmp_path, clock) as running:
        for _ in range(4):
            assert await running.ask(RequestCode.SEND_MESSAGE_V2, SEND, bytes(600_000)) == ResponseCode.SUCCESS
        segments = sorted((tmp_path / "commitlog").iterdir())
        running.set_clock(FOUR_DAYS_MS)
        assert await running.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"four days ahead") == ResponseCode.SUCCESS
    for _ in range(restarts):
        async with running_broker(tmp_path, clock) as running:
            await running.do_what_timers_do()
            assert await running.ask(RequestCode.DELETE_EXPIRED_COMMITLOG) == ResponseCode.SUCCESS
            await running.do_what_timers_do()
            assert set(segments) <= set((tmp_path / "commitlog").iterdir())
            assert await running.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"after a restart") == ResponseCode.SUCCESS


async def test_no_client_and_no_registration_is_forgotten(running: Running) -> None:
    consumers, producers = [ConsumerData(group_name="g")], [ProducerData(group_name="p")]
    heartbeat = HeartbeatData(client_id="c", consumer_data_set=consumers, producer_data_set=producers)
    assert await running.ask(RequestCode.HEART_BEAT, None, heartbeat.encode()) == ResponseCode.SUCCESS
    running.set_clock(FOUR_DAYS_MS)
    await running.do_what_timers_do()
    await asyncio.sleep(0.1)  # a connection that was closed is forgotten
    serving = running.broker._serving
    assert serving is not None
    assert len(serving.context.clients.producer_groups.connections("p")) == 1
    assert serving.context.clients.consumer_groups.find("g") is not None
    (name_server,) = running.broker.name_servers
    route = GetRouteInfoRequestHeader(topic="TBW102")
    answer = await running.client.invoke(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, route, timeout_ms=20_000)
    assert answer.code == ResponseCode.SUCCESS


async def test_a_delayed_message_is_not_delivered_early(running: Running) -> None:
    in_two_hours = msgspec.structs.replace(SEND, properties="DELAY\x0118")
    assert await running.ask(RequestCode.SEND_MESSAGE_V2, in_two_hours, b"later") == ResponseCode.SUCCESS
    running.set_clock(FOUR_DAYS_MS)
    await running.do_what_timers_do()
    running.set_clock(0)
    await running.do_what_timers_do()
    assert await running.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"now") == ResponseCode.SUCCESS
    pull = msgspec.structs.replace(PULL, sys_flag=4, subscription="*")
    answer = await running.client.invoke(running.broker.identity.address, RequestCode.PULL_MESSAGE, pull, timeout_ms=20_000)
    assert [record.body for record in decode_records(answer.body)] == [b"now"]


async def test_a_pending_transaction_is_given_up_neither_asked_nor_unasked(running: Running) -> None:
    half = msgspec.structs.replace(SEND, properties="TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01T1", sys_flag=4)
    assert await running.ask(RequestCode.SEND_MESSAGE_V2, half, b"order") == ResponseCode.SUCCESS
    running.set_clock(FOUR_DAYS_MS)
    await running.do_what_timers_do()
    running.set_clock(0)
    await running.do_what_timers_do()
    serving = running.broker._serving
    assert serving is not None
    counts = serving.transactions.messages.counts
    assert (len(serving.transactions.messages), counts.skips, counts.discards) == (1, 0, 0)
