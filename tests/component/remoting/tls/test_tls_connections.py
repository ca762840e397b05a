"""Tests of plain and TLS connections on one port, which are distinguished by their first byte."""

import asyncio
import contextlib
import logging
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.acl.signature import is_signed
from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.remoting import ConnectFailed, RemotingClient, RemotingServer
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.errors import ConnectionClosed
from rocketmq_broker.remoting.tls import (
    ClientTls,
    NeedClientAuth,
    ServerContexts,
    ServerTls,
    TlsMode,
    client_context,
    secure_transport,
    server_contexts,
)
from rocketmq_broker.remoting.tls.handshakes import Handshakes
from tests.certificates import Authority, Certificate
from tests.waiting import until

ECHO = 7


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.sign("server")


class Place:
    """A server that echoes bodies, and the clients that a test opens."""

    def __init__(self) -> None:
        self.dispatcher = Dispatcher()
        self.dispatcher.add({ECHO: self._echo})
        self.requests: list[RemotingCommand] = []
        self.contexts: ServerContexts
        self.server: RemotingServer
        self._clients: list[RemotingClient] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    async def serve(self, settings: ServerTls) -> None:
        self.contexts = ServerContexts(settings)
        self.server = RemotingServer("127.0.0.1", 0, self.dispatcher, steady_ns=time.monotonic_ns, contexts=self.contexts)
        await self.server.start()

    def client(self, tls: ClientTls | None = None, **settings: object) -> RemotingClient:
        self._clients.append(RemotingClient(tls=tls, connect_timeout_ms=20_000, **settings))  # type: ignore[arg-type]
        return self._clients[-1]

    async def echo(self, client: RemotingClient, body: bytes = b"hello") -> bytes:
        return (await client.invoke(self.address, ECHO, None, body, timeout_ms=20_000)).body

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.server.stop()

    def _echo(self, connection: Connection, command: RemotingCommand) -> bytes:
        self.requests.append(command)
        return encode_response(command, ResponseCode.SUCCESS, body=command.body)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    await place.close()


def serving(certificate: Certificate, **settings: object) -> ServerTls:
    return ServerTls(cert_path=certificate.cert_path, key_path=certificate.key_path, **settings)  # type: ignore[arg-type]


async def test_a_permissive_server_takes_both_kinds(place: Place, authority: Authority, certificate: Certificate) -> None:
    await place.serve(serving(certificate))
    assert await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path))) == b"hello"
    assert await place.echo(place.client()) == b"hello"
    assert len(place.server.connections) == 2
    assert len(place.contexts.handshakes) == 0


@pytest.mark.parametrize("size", [0, 1, 20_000, 5_000_000])
async def test_bodies_of_all_sizes_come_through(place: Place, authority: Authority, certificate: Certificate, size: int) -> None:
    await place.serve(serving(certificate))
    client = place.client(ClientTls(trust_cert_path=authority.cert_path))
    bodies = [bytes([number]) * size for number in range(5)]
    assert await asyncio.gather(*(place.echo(client, body) for body in bodies)) == bodies


async def test_an_enforcing_server_closes_plain_connections(
    place: Place, authority: Authority, certificate: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(serving(certificate, mode=TlsMode.ENFORCING))
    with pytest.raises(ConnectionClosed):
        await place.echo(place.client())
    assert place.requests == []
    with pytest.raises(ConnectionClosed):
        await place.echo(place.client())
    assert caplog.text.count("tls.server.mode is enforcing") == 1, "a client that tries again and again does not fill the log"
    assert await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path))) == b"hello"


async def test_a_disabled_server_closes_tls_connections(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    await place.serve(ServerTls(mode=TlsMode.DISABLED))
    with pytest.raises(ConnectFailed):
        await place.echo(place.client(ClientTls(auth_server=False)))
    assert caplog.text.count("the peer uses TLS, but it is not enabled here") == 1
    assert len(caplog.records) == 1, "one place says it"
    assert await place.echo(place.client()) == b"hello"


async def test_without_a_certificate_the_first_handshake_makes_one_for_tests(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(ServerTls(test_mode=True))
    assert place.contexts.current is None, "nobody asked yet"
    clients = [place.client(ClientTls(auth_server=False)) for _ in range(5)]
    assert await asyncio.gather(*map(place.echo, clients)) == [b"hello"] * 5
    assert caplog.text.count("self-signed test certificate") == 1


async def test_a_certificate_for_tests_that_cannot_be_made_is_tried_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[object] = []

    def no_openssl(*words: object, **settings: object) -> None:
        tries.append(words)
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(subprocess, "run", no_openssl)
    await place.serve(ServerTls(test_mode=True))
    for _ in range(3):
        with pytest.raises(ConnectFailed):
            await place.echo(place.client(ClientTls(auth_server=False)))
    assert len(tries) == 1
    assert caplog.text.count("openssl is not available") == 1
    assert await place.echo(place.client()) == b"hello"


async def test_where_there_is_no_certificate_the_log_says_what_to_do(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    await place.serve(ServerTls())
    with pytest.raises(ConnectFailed):
        await place.echo(place.client(ClientTls(auth_server=False)))
    assert "set tls.server.certPath" in caplog.text


async def test_a_client_refuses_a_server_it_does_not_trust(
    place: Place, certificate: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(serving(certificate))
    stranger = Authority(tmp_path, "stranger")
    with pytest.raises(ConnectFailed, match="its certificate is not accepted: unable to get local issuer certificate"):
        await place.echo(place.client(ClientTls(trust_cert_path=stranger.cert_path)))
    await until(lambda: "it may not trust the certificate" in caplog.text)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    assert place.requests == []


async def test_a_client_refuses_a_certificate_for_another_host(place: Place, authority: Authority) -> None:
    await place.serve(serving(authority.sign("elsewhere", alt_names="DNS:elsewhere.example")))
    with pytest.raises(ConnectFailed, match="its certificate is not accepted: IP address mismatch"):
        await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path)))
    unsuspecting = ClientTls(trust_cert_path=authority.cert_path, check_hostname=False)
    assert await place.echo(place.client(unsuspecting)) == b"hello"


async def test_a_client_has_to_show_a_certificate_that_the_server_trusts(
    place: Place, authority: Authority, certificate: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(serving(certificate, need_client_auth=NeedClientAuth.REQUIRE, trust_cert_path=authority.cert_path))
    known, unknown = authority.sign("client"), Authority(tmp_path, "stranger").sign("client")
    with pytest.raises((ConnectFailed, ConnectionClosed)):
        await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path)))
    with pytest.raises((ConnectFailed, ConnectionClosed)):
        await place.echo(
            place.client(ClientTls(trust_cert_path=authority.cert_path, cert_path=unknown.cert_path, key_path=unknown.key_path))
        )
    assert place.requests == []
    assert "TLS handshake failed: peer did not return a certificate" in caplog.text
    assert "its certificate is not accepted" in caplog.text
    client = ClientTls(trust_cert_path=authority.cert_path, cert_path=known.cert_path, key_path=known.key_path)
    assert await place.echo(place.client(client)) == b"hello"


async def test_a_new_certificate_serves_new_connections_and_a_broken_one_none(
    place: Place, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_contexts, "LOOK_EVERY_S", 0.001)
    shown = authority.sign("shown")
    await place.serve(serving(shown))
    following = asyncio.create_task(place.contexts.follow())
    old = place.client(ClientTls(trust_cert_path=authority.cert_path))
    assert await place.echo(old) == b"hello"
    successor = Authority(tmp_path, "successor")
    shown.key_path.write_bytes(successor.sign("shown").key_path.read_bytes())
    await until(lambda: "the previous one stays in use" in caplog.text)
    assert await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path))) == b"hello"
    shown.cert_path.write_bytes((tmp_path / "shown.pem").read_bytes())
    await until(lambda: "reloaded certificate" in caplog.text)
    assert await place.echo(place.client(ClientTls(trust_cert_path=successor.cert_path))) == b"hello"
    assert await place.echo(old) == b"hello", "a connection that is open keeps its certificate"
    following.cancel()


async def test_a_handshake_that_does_not_end_is_given_up(
    place: Place, certificate: Certificate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(secure_transport, "HANDSHAKE_TIMEOUT_S", 0.01)
    await place.serve(serving(certificate))
    reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
    writer.write(b"\x16\x03\x01\x02\x00")
    assert await reader.read() == b""
    assert "no TLS handshake within" in caplog.text
    await until(lambda: len(place.contexts.handshakes) == 0)
    writer.close()


async def test_handshakes_that_nobody_finishes_shut_nobody_out(
    place: Place, certificate: Certificate, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(serving(certificate))
    place.contexts.handshakes = Handshakes(5)
    lying = [await asyncio.open_connection("127.0.0.1", place.server.port) for _ in range(5)]
    for _, writer in lying:
        writer.write(b"\x16\x03\x01\x02\x00\x01")
    await until(lambda: len(place.contexts.handshakes) == 5)
    assert await place.echo(place.client(ClientTls(trust_cert_path=authority.cert_path))) == b"hello"
    assert await lying[0][0].read() == b"", "the oldest gave its room up"
    assert "too many are unfinished" in caplog.text
    assert await place.echo(place.client()) == b"hello", "plain connections wait for none"
    for _, writer in lying:
        writer.close()
    await until(lambda: len(place.contexts.handshakes) == 0)


@pytest.mark.parametrize("nonsense", [b"\x16", b"\x16\x03\x01\x00\x05hello", b"\x16" * 100_000])
async def test_nonsense_that_begins_like_a_handshake_closes_its_connection_alone(
    place: Place, certificate: Certificate, nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await place.serve(serving(certificate))
    reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
    writer.write(nonsense)
    writer.write_eof()
    with contextlib.suppress(ConnectionResetError):
        await reader.read()
    writer.close()
    await until(lambda: len(place.contexts.handshakes) == 0 and not place.server.connections)
    assert await place.echo(place.client()) == b"hello"
    assert "Traceback" not in caplog.text


async def test_a_client_that_leaves_in_tls_is_gone_here_too(place: Place, certificate: Certificate) -> None:
    await place.serve(serving(certificate))
    client = place.client(ClientTls(auth_server=False))
    await place.echo(client)
    assert len(place.server.connections) == 1
    await client.close()
    await until(lambda: not place.server.connections)


async def test_stopping_the_server_sends_what_is_unsent(place: Place, certificate: Certificate) -> None:
    await place.serve(serving(certificate))
    client = place.client(ClientTls(auth_server=False))
    connection = await client.connect(place.address)
    answer = connection.start_invoke(ECHO, None, b"x" * 1_000_000, timeout_ms=20_000)
    await until(lambda: bool(place.requests))
    await place.server.stop()
    assert len((await answer).body) == 1_000_000


@pytest.mark.parametrize("serializer", SerializeType)
async def test_every_request_of_a_client_with_credentials_is_signed(place: Place, serializer: SerializeType) -> None:
    await place.serve(ServerTls(mode=TlsMode.DISABLED))
    credentials = SessionCredentials("orders-key", "a long secret")
    client = place.client(credentials=credentials, serialize_type=serializer)
    assert await place.echo(client, b"body") == b"body"
    await client.invoke_oneway(place.address, ECHO, None, b"another")
    await until(lambda: len(place.requests) == 2)
    for request in place.requests:
        assert is_signed(request.ext_fields(), request.body, "a long secret")


async def test_a_peer_that_does_not_read_holds_up_no_more_than_its_share(place: Place, certificate: Certificate) -> None:
    await place.serve(serving(certificate))
    client = place.client(ClientTls(auth_server=False))
    connection = await client.connect(place.address)
    await place.echo(client)
    assert connection._transport is not None
    connection._transport.pause_reading()
    (served,) = place.server.connections
    for _ in range(3):
        served.send(encode_response(RemotingCommand(code=0, opaque=1), ResponseCode.SUCCESS, body=b"x" * 2_000_000))
        await asyncio.sleep(0)
    await until(lambda: not served.is_writable)
    connection._transport.resume_reading()
    await until(lambda: served.is_writable)


def test_the_context_of_a_client_asks_for_the_servers_certificate() -> None:
    context = client_context(ClientTls())
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
