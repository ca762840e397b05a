"""Tests of connections over loopback: requests, responses, timeouts, closed connections, and misbehaving peers."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.protocol import (
    FrameDecoder,
    RemotingCommand,
    RequestCode,
    ResponseCode,
    SerializeType,
    encode_request,
    encode_response,
)
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rocketmq_broker.remoting import (
    ConnectFailed,
    Connection,
    ConnectionClosed,
    ConnectionLimits,
    RemotingClient,
    RemotingServer,
    RemotingTimeout,
)
from tests.waiting import until

HEADER = GetMaxOffsetRequestHeader(topic="t", queue_id=3)


class Echo:
    """A request handler that returns the queue id and the body, and records requests and connections."""

    def __init__(self) -> None:
        self.connected: list[Connection] = []
        self.disconnected: list[Connection] = []
        self.batches: list[list[RemotingCommand]] = []
        self.is_silent = False
        self.answer_body: bytes | None = None

    def on_connected(self, connection: Connection) -> None:
        self.connected.append(connection)

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        self.batches.append(requests)
        for request in requests:
            if request.code == 666:
                raise RuntimeError("a processor failed")
            if not self.is_silent and not request.is_oneway:
                offset = request.decode_header(GetMaxOffsetRequestHeader).queue_id
                body = request.body if self.answer_body is None else self.answer_body
                connection.send(encode_response(request, 0, GetMaxOffsetResponseHeader(offset=offset), body))

    def on_disconnected(self, connection: Connection) -> None:
        self.disconnected.append(connection)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def server(echo: Echo) -> AsyncIterator[RemotingServer]:
    server = RemotingServer("127.0.0.1", 0, echo, steady_ns=time.monotonic_ns, limits=ConnectionLimits(close_timeout_s=0.2))
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client() -> AsyncIterator[RemotingClient]:
    client = RemotingClient()
    yield client
    await client.close()


def address(server: RemotingServer) -> str:
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("serialize_type", SerializeType)
async def test_a_request_gets_its_answer_in_its_own_serializer(server: RemotingServer, serialize_type: SerializeType) -> None:
    client = RemotingClient(serialize_type=serialize_type)
    answer = await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER, b"body")
    assert answer.decode_header(GetMaxOffsetResponseHeader).offset == 3
    assert (answer.body, answer.serialize_type) == (b"body", serialize_type)
    await client.close()


async def test_requests_in_flight_share_one_connection_and_find_their_own_answers(
    server: RemotingServer, client: RemotingClient, echo: Echo
) -> None:
    answers = await asyncio.gather(
        *(client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER, str(number).encode()) for number in range(200))
    )
    assert [answer.body for answer in answers] == [str(number).encode() for number in range(200)]
    assert len(echo.connected) == 1


async def test_all_requests_of_one_read_come_in_one_call_and_the_answers_in_one_write(server: RemotingServer, echo: Echo) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    frames = [encode_request(RequestCode.GET_MAX_OFFSET, HEADER, opaque=opaque) for opaque in range(5)]
    writer.write(b"".join(frames))
    answers = FrameDecoder().feed(await reader.read(65536))
    assert [answer.opaque for answer in answers] == [0, 1, 2, 3, 4]
    assert [len(batch) for batch in echo.batches] == [5]
    writer.close()


async def test_an_answer_that_does_not_come_is_given_up_in_time(
    server: RemotingServer, client: RemotingClient, echo: Echo
) -> None:
    echo.is_silent = True
    connection = await client.connect(address(server))
    slow = connection.start_invoke(RequestCode.GET_MAX_OFFSET, HEADER, timeout_ms=60_000)
    with pytest.raises(RemotingTimeout, match="no answer from"):
        await connection.invoke(RequestCode.GET_MAX_OFFSET, HEADER, timeout_ms=20)
    assert not slow.done()
    connection.close()
    with pytest.raises(ConnectionClosed):
        await slow


async def test_who_waits_learns_that_the_connection_ended(server: RemotingServer, client: RemotingClient, echo: Echo) -> None:
    echo.is_silent = True
    waiting = asyncio.ensure_future(client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER))
    await until(lambda: echo.batches)
    echo.connected[0].close()
    with pytest.raises(ConnectionClosed, match="ended"):
        await waiting


async def test_the_next_request_reconnects(server: RemotingServer, client: RemotingClient, echo: Echo) -> None:
    await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)
    echo.connected[0].close()
    await until(lambda: not client.connections)
    await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)
    assert len(echo.connected) == 2


async def test_nobody_listening_is_a_failed_connect(client: RemotingClient) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectFailed, match="no connection to"):
            await client.invoke(f"127.0.0.1:{unused.getsockname()[1]}", RequestCode.GET_MAX_OFFSET, HEADER)


@pytest.mark.parametrize("wrong", ["nonsense", "127.0.0.1:", ":80", "127.0.0.1:port", "127.0.0.1:98765"])
async def test_an_address_that_is_none_is_a_failed_connect(client: RemotingClient, wrong: str) -> None:
    with pytest.raises(ConnectFailed, match="HOST:PORT"):
        await client.connect(wrong)


async def test_a_closed_client_connects_no_more(server: RemotingServer) -> None:
    client = RemotingClient()
    await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)
    await client.close()
    with pytest.raises(ConnectionClosed):
        await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)


async def test_a_server_asks_its_client_too(server: RemotingServer, echo: Echo) -> None:
    asked = Echo()
    client = RemotingClient(asked)
    await client.connect(address(server))
    await until(lambda: echo.connected)
    answer = await echo.connected[0].invoke(RequestCode.GET_MAX_OFFSET, HEADER, timeout_ms=1000)
    assert answer.decode_header(GetMaxOffsetResponseHeader).offset == 3
    echo.connected[0].invoke_oneway(RequestCode.GET_MAX_OFFSET, HEADER)
    await until(lambda: len(asked.batches) == 2)
    assert asked.batches[1][0].is_oneway
    await client.close()


async def test_a_client_without_handler_refuses_what_it_is_asked(
    server: RemotingServer, client: RemotingClient, echo: Echo
) -> None:
    await client.connect(address(server))
    await until(lambda: echo.connected)
    answer = await echo.connected[0].invoke(9999, timeout_ms=1000)
    assert (answer.code, answer.remark) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 9999 not supported")


async def test_a_handler_that_raises_leaves_the_connection_alive(
    server: RemotingServer, client: RemotingClient, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await client.connect(address(server))
    connection.invoke_oneway(666)
    await until(lambda: echo.batches)
    await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)
    assert len(echo.connected) == 1
    assert "could not be handled" in caplog.text


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\x08\0\0\xff\xff1234"])
async def test_garbage_closes_its_own_connection_only(
    server: RemotingServer, client: RemotingClient, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(garbage)
    assert await reader.read() == b""
    writer.close()
    assert "Traceback" not in caplog.text
    assert "closing the connection of 127.0.0.1" in caplog.text
    assert (await client.invoke(address(server), RequestCode.GET_MAX_OFFSET, HEADER)).code == 0


async def test_a_client_that_wants_tls_is_named_as_such_once(server: RemotingServer, caplog: pytest.LogCaptureFixture) -> None:
    context = ssl.create_default_context()
    for _ in range(3):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=context, server_hostname="broker")
    assert [record.getMessage().partition(", ")[0].rpartition(": ")[2] for record in caplog.records] == ["the peer uses TLS"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "ended: the peer uses HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "ended: the peer uses TLS"),
    ],
)
async def test_who_asks_a_server_of_another_protocol_is_told_so(client: RemotingClient, answer: bytes, words: str) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(other, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionClosed, match=words):
        await client.invoke(f"127.0.0.1:{port}", RequestCode.GET_MAX_OFFSET, HEADER)
    listening.close()


async def test_a_request_before_the_garbage_is_answered(server: RemotingServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(encode_request(RequestCode.GET_MAX_OFFSET, HEADER, opaque=1) + b"GET / HTTP/1.1\r\n")
    (answer,) = FrameDecoder().feed(await reader.read())
    assert answer.opaque == 1
    writer.close()


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(echo: Echo) -> None:
    server = RemotingServer("127.0.0.1", 0, echo, steady_ns=time.monotonic_ns, limits=ConnectionLimits(idle_timeout_s=2))
    await server.start()
    client, idle = RemotingClient(), RemotingClient()
    connection = await client.connect(address(server))
    idle_connection = await idle.connect(address(server))
    async with asyncio.timeout(30):
        while idle_connection.is_open:
            await connection.invoke(RequestCode.GET_MAX_OFFSET, HEADER, timeout_ms=10_000)
            await asyncio.sleep(0.02)
    assert connection.is_open
    await client.close()
    await idle.close()
    await server.stop()


async def test_a_peer_that_does_not_read_is_not_read_from(echo: Echo) -> None:
    limits = ConnectionLimits(high_water_bytes=64 * 1024, close_timeout_s=0.1)
    server = RemotingServer("127.0.0.1", 0, echo, steady_ns=time.monotonic_ns, limits=limits)
    await server.start()
    echo.answer_body = bytes(128 * 1024)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    frames = [encode_request(RequestCode.GET_MAX_OFFSET, HEADER, bytes(60_000), opaque=opaque) for opaque in range(2000)]
    for frame in frames[:200]:
        writer.write(frame)
    await until(lambda: echo.connected and not echo.connected[0].is_writable)
    handled = sum(map(len, echo.batches))
    await asyncio.sleep(0.1)
    assert sum(map(len, echo.batches)) == handled < 200
    decoder = FrameDecoder()
    answered = 0
    async with asyncio.timeout(20):
        while answered < 200:
            answered += len(decoder.feed(await reader.read(1 << 20)))
    writer.close()
    await server.stop()


async def test_stopping_sends_what_was_answered_and_tells_the_handler(server: RemotingServer, echo: Echo) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await until(lambda: echo.connected)
    echo.connected[0].invoke_oneway(1, None, b"last words")
    await server.stop()
    (command,) = FrameDecoder().feed(await reader.read())
    assert command.body == b"last words"
    assert echo.disconnected == echo.connected
    assert not server.connections
    writer.close()


async def test_a_connection_knows_the_other_end(server: RemotingServer, client: RemotingClient, echo: Echo) -> None:
    connection = await client.connect(address(server))
    await until(lambda: echo.connected)
    assert connection.peer == address(server)
    assert connection.born_host == bytes([127, 0, 0, 1]) + server.port.to_bytes(4)
    assert echo.connected[0].peer.startswith("127.0.0.1:")


async def test_what_is_sent_on_a_closed_connection_is_dropped_or_refused(server: RemotingServer, client: RemotingClient) -> None:
    connection = await client.connect(address(server))
    connection.close()
    await connection.wait_closed()
    connection.send(b"frame")
    connection.send_at_once([b"frame"])
    await asyncio.sleep(0)
    with pytest.raises(ConnectionClosed):
        await connection.invoke(1, timeout_ms=100)
    with pytest.raises(ConnectionClosed):
        connection.invoke_oneway(1)


async def test_many_first_requests_at_once_make_one_connection(server: RemotingServer, echo: Echo) -> None:
    client = RemotingClient()
    connections = await asyncio.gather(*(client.connect(address(server)) for _ in range(20)))
    assert len(set(connections)) == 1
    assert len(echo.connected) == 1
    await client.close()
