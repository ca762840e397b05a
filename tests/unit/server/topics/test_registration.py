"""Tests registration, without which new clients cannot find a broker."""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.steps import finish
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.route import TopicRouteData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request, encode_response
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.name_server import RegisterBrokerRequestHeader
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.errors import ConnectFailed
from rocketmq_broker.server.topics import registration
from rocketmq_broker.server.topics.config_bodies import TopicsSnapshot
from rocketmq_broker.server.topics.registration import Registration, encode_registration
from tests.unit.server.conftest import IDENTITY, Desk

ONE, OTHER = "127.0.0.1:1", "127.0.0.1:2"
NEVER_S = 100_000.0
(REQUEST,) = FrameDecoder().feed(encode_request(RequestCode.REGISTER_BROKER, opaque=1))
(SUCCESS,) = FrameDecoder().feed(encode_response(REQUEST, ResponseCode.SUCCESS))


class NameServers:
    """A remoting client. A request to an address fails with the address's next error, or gets SUCCESS if there is none."""

    def __init__(self) -> None:
        self.reasons: dict[str, list[Exception]] = {ONE: [], OTHER: []}
        self.asked: list[str] = []
        self.registrations: list[tuple[RegisterBrokerRequestHeader, bytes]] = []
        self.unconnected: set[str] = set()
        self.body = b""
        """The body of each response."""

    async def invoke(
        self, address: str, code: int, header: RegisterBrokerRequestHeader, body: bytes = b"", **__: object
    ) -> RemotingCommand:
        self.asked.append(address)
        self.registrations.append((header, body))
        if self.reasons[address]:
            raise self.reasons[address].pop(0)
        self.unconnected.discard(address)
        return msgspec.structs.replace(SUCCESS, body=self.body)

    def is_connected(self, address: str) -> bool:
        return address not in self.unconnected

    def times(self, address: str) -> int:
        return self.asked.count(address)


class Pauses(Backoff):
    """Pauses that are recorded, and that do not wait."""

    def __init__(self, seen: list[float]) -> None:
        super().__init__(0.5, 5.0)
        self._seen = seen

    def next_pause_s(self) -> float:
        self._seen.append(super().next_pause_s())
        return 0.0


class Stage:
    def __init__(self, desk: Desk, *addresses: str, period_s: float = NEVER_S) -> None:
        self.name_servers = NameServers()
        self.pauses: list[float] = []
        self.registration = Registration(
            client=self.name_servers,  # type: ignore[arg-type]
            name_servers=addresses,
            identity=IDENTITY,
            topic_table=desk.topics,
            broker_permission=6,
            period_s=period_s,
            new_backoff=lambda: Pauses(self.pauses),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.registration.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0)

    def loses(self, address: str) -> None:
        """Ends the connection to that name server."""
        self.name_servers.unconnected.add(address)
        self.registration.connection_ended()


async def test_it_is_told_when_every_name_server_has_answered_or_failed(desk: Desk) -> None:
    stage = Stage(desk, ONE, OTHER)
    stage.name_servers.reasons[OTHER] = [ConnectFailed("nobody listens")]
    async with stage.running(), asyncio.timeout(30):
        await stage.registration.registered()
        assert {ONE, OTHER} <= set(stage.name_servers.asked)


async def test_a_route_is_read_from_the_next_name_server_if_one_fails(desk: Desk) -> None:
    stage = Stage(desk, ONE, OTHER)
    stage.name_servers.reasons[ONE] = [ConnectFailed("no process listens")]
    stage.name_servers.body = TopicRouteData().encode()
    assert await stage.registration.route_of("orders") == TopicRouteData()
    assert stage.name_servers.asked == [ONE, OTHER]


async def test_a_mistake_during_a_registration_ends_neither_the_next_nor_those_who_wait(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    stage.name_servers.reasons[ONE] = [RuntimeError("a mistake"), ConnectFailed("nobody listens")]
    async with stage.running(), asyncio.timeout(30):
        for _ in range(3):
            await stage.registration.registered()
    assert stage.name_servers.reasons[ONE] == []


async def test_a_change_registers_at_once(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    async with stage.running():
        await stage.until(lambda: stage.name_servers.times(ONE) == 1)
        stage.registration.topic_changed("orders")
        await stage.until(lambda: stage.name_servers.times(ONE) == 2)


async def test_a_topic_is_announced_once_a_name_server_has_it(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    announced: list[set[str]] = []
    stage.registration.on_registered = announced.append
    async with stage.running():
        await stage.until(lambda: stage.name_servers.times(ONE) == 1)
        stage.name_servers.reasons[ONE] = [ConnectFailed("no process listens")]
        stage.registration.topic_changed("orders")
        await stage.until(lambda: stage.name_servers.times(ONE) == 2)
        assert announced == []
        stage.registration.topic_changed("payments")
        await stage.until(lambda: announced != [])
        await stage.registration.registered()
    assert announced == [{"orders", "payments"}]


async def test_a_name_server_whose_connection_ended_is_registered_with_again_at_once_and_no_other_is(desk: Desk) -> None:
    stage = Stage(desk, ONE, OTHER)
    async with stage.running():
        await stage.until(lambda: len(stage.name_servers.asked) == 2)
        stage.loses(ONE)
        await stage.until(lambda: stage.name_servers.times(ONE) == 2)
        assert stage.pauses == []
        assert stage.name_servers.times(OTHER) == 1


async def test_a_name_server_that_comes_back_later_is_tried_again_and_again_ever_more_rarely(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    async with stage.running():
        await stage.until(lambda: stage.name_servers.times(ONE) == 1)
        stage.name_servers.reasons[ONE] = [ConnectFailed("nobody listens") for _ in range(6)]
        stage.loses(ONE)
        await stage.until(lambda: stage.name_servers.times(ONE) == 8)
    assert stage.pauses == [0.5, 1, 2, 4, 5, 5]


async def test_a_name_server_that_drops_every_connection_is_not_stormed(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    async with stage.running():
        for times in range(1, 5):
            await stage.until(lambda times=times: stage.name_servers.times(ONE) == times)  # type: ignore[misc]
            stage.loses(ONE)
        await stage.until(lambda: stage.name_servers.times(ONE) == 5)
    assert stage.pauses == [0.5, 1, 2], "the first time at once, then ever more rarely"


async def test_a_name_server_that_kept_its_connection_for_a_period_is_trusted_again(desk: Desk) -> None:
    stage = Stage(desk, ONE, period_s=0.001)
    async with stage.running():
        for _ in range(2):
            stage.loses(ONE)
            before = stage.name_servers.times(ONE)
            await stage.until(lambda before=before: stage.name_servers.times(ONE) >= before + 3)  # type: ignore[misc]
    assert stage.pauses == []


async def test_a_name_server_that_is_away_does_not_keep_the_broker_from_saying_goodbye(desk: Desk) -> None:
    stage = Stage(desk, ONE, OTHER)
    stage.name_servers.reasons[ONE] = [ConnectFailed("nobody listens")]
    await stage.registration.unregister()
    assert stage.name_servers.asked == [ONE, OTHER]


def with_topics(desk: Desk, *names: str) -> None:
    for name in names:
        desk.topics.configs.put(TopicConfig(name), 1)


async def test_very_many_topics_are_registered_compressed(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    with_topics(desk, *(f"topic-{number}" for number in range(1001)))
    async with stage.running():
        await stage.registration.registered()
    header, body = stage.name_servers.registrations[0]
    assert header.compressed
    assert header.body_crc32 == zlib.crc32(body) & 0x7FFFFFFF
    table = finish(RegisterBrokerBody.read_compressed(body)).topic_config_serialize_wrapper.topic_config_table
    assert set(table) == {config.topic_name for config in desk.topics}


async def test_few_topics_are_registered_as_json(desk: Desk) -> None:
    stage = Stage(desk, ONE)
    async with stage.running():
        await stage.registration.registered()
    header, body = stage.name_servers.registrations[0]
    assert not header.compressed
    assert "TBW102" in RegisterBrokerBody.decode(body).topic_config_serialize_wrapper.topic_config_table


def test_name_servers_do_not_hear_of_the_op_messages_topic(desk: Desk) -> None:
    with_topics(desk, "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC")
    encoded = encode_registration(TopicsSnapshot.of(desk.topics.configs), 6)
    table = RegisterBrokerBody.decode(encoded.body).topic_config_serialize_wrapper.topic_config_table
    assert [name for name in table if name.startswith("RMQ_SYS_TRANS")] == ["RMQ_SYS_TRANS_HALF_TOPIC"]
    assert encoded.left_out == 0


def test_a_store_with_more_topics_than_a_registration_has_room_for_leaves_out_what_clients_miss_least(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_topics(desk, *(f"%DLQ%g{number}" for number in range(3)), *(f"%RETRY%g{number}" for number in range(3)), "orders")
    others = len(desk.topics.configs) - 6
    monkeypatch.setattr(registration, "MAX_REGISTERED", others + 2)
    encoded = encode_registration(TopicsSnapshot.of(desk.topics.configs), 6)
    table = RegisterBrokerBody.decode(encoded.body).topic_config_serialize_wrapper.topic_config_table
    assert encoded.left_out == 4
    assert "orders" in table
    assert [name for name in table if name.startswith("%")] == ["%RETRY%g0", "%RETRY%g1"]


async def test_a_registration_that_fails_is_an_error_in_the_log_once_and_in_the_metrics_until_it_succeeds(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(desk, ONE, OTHER)
    stage.name_servers.reasons[ONE] = [ConnectFailed("nobody listens")] * 3
    async with stage.running():
        await stage.registration.registered()
        assert stage.registration.registered_with == {ONE: False, OTHER: True}
        await stage.until(lambda: stage.registration.registered_with[ONE])
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "its clients cannot find this broker" in errors[0].getMessage()
