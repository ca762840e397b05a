"""Tests that an ended connection's memory is released without a run of the garbage collector."""

import asyncio
import gc
import struct
import time
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.protocol import RequestCode, encode_request
from rocketmq_broker.protocol.headers.name_server import RegisterBrokerRequestHeader
from rocketmq_broker.remoting import Connection, ConnectionLimits, RemotingClient, RemotingServer
from rocketmq_broker.remoting.client import RefusingHandler
from rocketmq_broker.remoting.dispatcher import Dispatcher, Steps
from rocketmq_broker.remoting.errors import ConnectionClosed
from rocketmq_broker.remoting.tls import ClientTls, ServerContexts, ServerTls, client_context
from tests.certificates import Authority
from tests.waiting import until

HALF_A_FRAME = struct.pack(">I", 1 << 20) + bytes(512 << 10)
NO_FRAME = b"\x00\x00\x00\x10\x00\xff\xff\xff" + bytes(512 << 10)
"""Its header would be longer than the frame."""
LONG_WORK = 7


class Watching:
    """A request handler that records the connections with weak references."""

    def __init__(self) -> None:
        self.seen: list[weakref.ref[Connection]] = []
        self._dispatcher = Dispatcher()
        self._dispatcher.add({LONG_WORK: lambda connection, command: _in_steps()})
        self.on_requests = self._dispatcher.on_requests
        self.on_disconnected = self._dispatcher.on_disconnected

    def on_connected(self, connection: Connection) -> None:
        self.seen.append(weakref.ref(connection))

    def all_are_gone(self) -> bool:
        return bool(self.seen) and all(connection() is None for connection in self.seen)


def _in_steps() -> Steps:
    for _ in range(10_000):
        yield
    return None


@pytest.fixture(autouse=True)
def _without_the_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def watching() -> Watching:
    return Watching()


@pytest.fixture
async def server(watching: Watching, authority: Authority) -> AsyncIterator[RemotingServer]:
    certificate = authority.sign("server")
    contexts = ServerContexts(ServerTls(cert_path=certificate.cert_path, key_path=certificate.key_path))
    limits = ConnectionLimits(frame_timeout_s=60, close_timeout_s=0.2)
    server = RemotingServer("127.0.0.1", 0, watching, steady_ns=time.monotonic_ns, limits=limits, contexts=contexts)
    await server.start()
    yield server
    await server.stop()


def held_bytes(server: RemotingServer) -> int:
    return sum(connection.held_bytes for connection in server.connections)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("ends", ["close", "abort", "server"])
async def test_the_half_of_a_frame_goes_with_its_connection(
    server: RemotingServer, watching: Watching, authority: Authority, is_tls: bool, ends: str
) -> None:
    context = client_context(ClientTls(trust_cert_path=authority.cert_path)) if is_tls else None
    _, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=context, server_hostname="127.0.0.1" if is_tls else None
    )
    writer.write(HALF_A_FRAME)
    await until(lambda: held_bytes(server) >= len(HALF_A_FRAME))
    if ends == "server":
        next(iter(server.connections)).close()
    elif ends == "abort":
        writer.transport.abort()
    else:
        writer.close()
    await until(lambda: not server.connections)
    await until(watching.all_are_gone)


@pytest.mark.parametrize("sent", [NO_FRAME, encode_request(LONG_WORK, opaque=1) * 100], ids=["no frame", "long work"])
async def test_a_peer_that_was_refused_or_waits_for_its_work_leaves_nothing(
    server: RemotingServer, watching: Watching, sent: bytes
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    await until(lambda: watching.seen)
    writer.close()
    await until(lambda: not server.connections)
    await until(watching.all_are_gone)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
async def test_a_client_s_ended_connection_leaves_nothing_though_requests_waited(
    server: RemotingServer, authority: Authority, is_tls: bool
) -> None:
    client = RemotingClient(RefusingHandler(), tls=ClientTls(trust_cert_path=authority.cert_path) if is_tls else None)
    connection = await client.connect(f"127.0.0.1:{server.port}")
    waiting = connection.start_invoke(LONG_WORK, None, bytes(512 << 10), timeout_ms=60_000)
    reference = weakref.ref(connection)
    del connection
    await client.close()
    with pytest.raises(ConnectionClosed):
        await waiting
    del waiting
    await until(lambda: reference() is None)


async def test_a_broker_s_connection_to_the_name_server_leaves_nothing() -> None:
    name_server = NameServer("127.0.0.1", 0, kv_config_path=None, steady_ns=lambda: 0)
    await name_server.start()
    client = RemotingClient()
    header = RegisterBrokerRequestHeader(
        broker_name="a", broker_addr="10.1.1.1:10911", cluster_name="c", ha_server_addr="", broker_id=0
    )
    await client.invoke(f"127.0.0.1:{name_server.port}", RequestCode.REGISTER_BROKER, header)
    (connection,) = [weakref.ref(one) for one in name_server._server.connections]
    await client.close()
    await until(lambda: connection() is None)
    await name_server.stop()
