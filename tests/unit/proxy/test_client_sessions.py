"""A client's session ends with its telemetry stream. Calls in progress still get their responses."""

import asyncio

import pytest

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.connections.session import ClientSessions
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.dispatcher import Dispatcher

CALLER = Caller("client-1", ("127.0.0.1", 1))


class SlowBroker:
    """A broker that responds when the test lets it."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[tuple[Connection, RemotingCommand]] = asyncio.Queue()
        dispatcher = Dispatcher()
        dispatcher.add({RequestCode.HEART_BEAT: self._take})
        self.sessions = ClientSessions(dispatcher, MemoryBudget(), ("127.0.0.1", 2))

    def _take(self, connection: Connection, command: RemotingCommand) -> None:
        self.asked.put_nowait((connection, command))


async def test_a_call_under_way_gets_its_answer_although_the_telemetry_ended() -> None:
    broker = SlowBroker()
    session = broker.sessions.of(CALLER)
    outbox = session.open_telemetry()
    call = asyncio.ensure_future(session.invoke(RequestCode.HEART_BEAT))
    connection, command = await broker.asked.get()
    session.telemetry_ended(outbox)
    assert session.connection.is_open
    assert not session.has_telemetry
    later = broker.sessions.of(CALLER)
    assert later is not session
    connection.send(encode_response(command, ResponseCode.SUCCESS))
    assert (await call).code == ResponseCode.SUCCESS
    await session.connection.wait_closed()
    assert broker.sessions.of(CALLER) is later
    await broker.sessions.close()


async def test_a_session_without_calls_ends_at_once_with_its_telemetry() -> None:
    broker = SlowBroker()
    session = broker.sessions.of(CALLER)
    session.telemetry_ended(session.open_telemetry())
    assert not session.connection.is_open
    await session.connection.wait_closed()
    assert not len(broker.sessions)


async def test_a_call_that_its_session_did_not_outlive_is_a_time_out_not_a_fault_of_the_broker() -> None:
    broker = SlowBroker()
    session = broker.sessions.of(CALLER)
    call = asyncio.ensure_future(session.invoke(RequestCode.HEART_BEAT))
    connection, _ = await broker.asked.get()
    connection.close()
    with pytest.raises(CallRefused, match="try again") as refusal:
        await call
    assert refusal.value.status.code == api.PROXY_TIMEOUT
    assert broker.sessions.of(CALLER) is not session
    await broker.sessions.close()
