"""Tests of peers that use too much time or memory, over loopback, with a server whose limits are small."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rocketmq_broker.protocol import FrameDecoder, RemotingCommand, ResponseCode, encode_request, encode_response
from rocketmq_broker.remoting import Connection, ConnectionLimits, RemotingClient, RemotingServer
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.dispatcher import Dispatcher, Steps
from tests.waiting import until

PING, WORK, LARGE = 1, 2, 3
KIBIBYTE = 1024
LARGE_ANSWER = bytes(64 * KIBIBYTE)


@asynccontextmanager
async def served(
    dispatcher: Dispatcher, *, memory: MemoryBudget | None = None, most: int = 1000, frame_timeout_s: float = 120
) -> AsyncIterator[RemotingServer]:
    limits = ConnectionLimits(
        close_timeout_s=0.1, high_water_bytes=64 * KIBIBYTE, frame_timeout_s=frame_timeout_s, idle_timeout_s=frame_timeout_s
    )
    server = RemotingServer(
        "127.0.0.1", 0, dispatcher, steady_ns=time.monotonic_ns, limits=limits, memory=memory, max_connections=most
    )
    await server.start()
    yield server
    await server.stop()


async def connect(server: RemotingServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port, limit=KIBIBYTE)


async def ping(server: RemotingServer) -> None:
    client = RemotingClient()
    answer = await client.invoke(f"127.0.0.1:{server.port}", PING, timeout_ms=30_000)
    assert answer.code == ResponseCode.SUCCESS
    await client.close()


async def is_ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Returns True if the server closes the connection instead of responding."""
    try:
        writer.write(encode_request(PING, opaque=1))
        return not await reader.read(KIBIBYTE)
    except ConnectionError:
        return True


def pinging() -> Dispatcher:
    dispatcher = Dispatcher()
    dispatcher.add({PING: lambda connection, command: encode_response(command, ResponseCode.SUCCESS)})
    return dispatcher


async def test_long_work_for_one_connection_leaves_time_for_others() -> None:
    released = asyncio.Event()

    def work(connection: Connection, command: RemotingCommand) -> Steps:
        while not released.is_set():
            yield
        return encode_response(command, ResponseCode.SUCCESS)

    dispatcher = pinging()
    dispatcher.add({WORK: work})
    async with served(dispatcher) as server:
        reader, writer = await connect(server)
        writer.write(encode_request(WORK, opaque=1) + encode_request(PING, opaque=2))
        await ping(server)
        released.set()
        async with asyncio.timeout(30):
            answers = FrameDecoder()
            opaques: list[int] = []
            while len(opaques) < 2:
                opaques += [answer.opaque for answer in answers.feed(await reader.read(KIBIBYTE))]
        assert opaques == [1, 2]
        writer.close()


async def test_requests_are_not_answered_before_the_peer_has_read_the_answers_to_others() -> None:
    answered: list[int] = []

    def large(connection: Connection, command: RemotingCommand) -> bytes:
        answered.append(command.opaque)
        return encode_response(command, ResponseCode.SUCCESS, body=LARGE_ANSWER)

    dispatcher = pinging()
    dispatcher.add({LARGE: large})
    requests = 2000
    async with served(dispatcher) as server:
        reader, writer = await connect(server)
        writer.write(b"".join(encode_request(LARGE, opaque=number) for number in range(requests)))
        await until(lambda: any(not connection.is_writable for connection in server.connections))
        await ping(server)
        assert 0 < max(connection.held_bytes for connection in server.connections) < 4 * len(LARGE_ANSWER)
        assert len(answered) < requests
        decoder, got = FrameDecoder(), 0
        async with asyncio.timeout(60):
            while got < requests:
                got += len(decoder.feed(await reader.read(1 << 20)))
        assert answered == list(range(requests))
        writer.close()


async def test_one_way_requests_that_wait_are_handled_though_their_connection_is_reset() -> None:
    begun, released = asyncio.Event(), asyncio.Event()
    handled: list[int] = []
    ends: list[int] = []

    def work(connection: Connection, command: RemotingCommand) -> Steps:
        begun.set()
        while not released.is_set():
            yield
        handled.append(command.opaque)
        return None

    dispatcher = Dispatcher(on_disconnected=[lambda connection: ends.append(len(handled))])
    dispatcher.add({WORK: work})
    async with served(dispatcher) as server:
        _, writer = await connect(server)
        requests = [encode_request(WORK, opaque=number, oneway=number != 2) for number in range(4)]
        writer.write(b"".join(requests))
        await begun.wait()
        (connection,) = server.connections
        connection.give_up(0)
        await connection.wait_closed()
        assert not ends
        released.set()
        await until(lambda: ends)
    assert handled == [0, 1, 3]
    assert ends == [3]


async def test_half_frames_of_many_connections_stay_within_the_budget(caplog: pytest.LogCaptureFixture) -> None:
    budget = 1024 * KIBIBYTE
    memory = MemoryBudget(budget)
    half = struct.pack(">I", 200 * KIBIBYTE) + bytes(100 * KIBIBYTE)
    async with served(pinging(), memory=memory) as server:
        peers = [await connect(server) for _ in range(30)]
        for _, writer in peers:
            writer.write(half)
        await until(lambda: len(server.connections) <= 10)
        assert memory.total_bytes <= budget
        assert sum(connection.held_bytes for connection in server.connections) <= budget
        assert "this one uses the most" in caplog.text
        await ping(server)
        for _, writer in peers:
            writer.close()
    assert memory.total_bytes == 0


async def test_a_frame_that_never_gets_whole_ends_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    async with served(pinging(), frame_timeout_s=0.2) as server:
        _, writer = await connect(server)
        writer.write(struct.pack(">I", 200 * KIBIBYTE) + bytes(10 * KIBIBYTE))
        await until(lambda: server.connections)
        while server.connections:
            writer.write(b"x")  # something moves all the time
            await asyncio.sleep(0.01)
    assert "a frame is incomplete" in caplog.text


async def test_connections_beyond_the_most_are_refused_and_the_others_served(caplog: pytest.LogCaptureFixture) -> None:
    async with served(pinging(), most=2) as server:
        reader, writer = await connect(server)
        await until(lambda: len(server.connections) == 1)
        others = [await connect(server) for _ in range(3)]
        await until(lambda: len(server.connections) == 2)
        refused = [other for other in others if await is_ended(*other)]
        assert len(refused) == 2
        writer.write(encode_request(PING, opaque=1))
        assert await reader.read(KIBIBYTE)
        assert "too many open connections, at most 2" in caplog.text
        for _, other in [*others, (reader, writer)]:
            other.close()
