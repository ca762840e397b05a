"""Tests of a TLS tunnel with both ends in memory."""

import ssl
from pathlib import Path

import pytest

from rocketmq_broker.remoting.tls import ClientTls, client_context
from rocketmq_broker.remoting.tls.contexts import load_certificate, new_context
from rocketmq_broker.remoting.tls.tunnel import TlsTunnel
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server_context(authority: Authority) -> ssl.SSLContext:
    context = new_context(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.sign("server")
    load_certificate(context, certificate.cert_path, certificate.key_path, None)
    return context


def client_tunnel(authority: Path | None = None) -> TlsTunnel:
    context = client_context(ClientTls(auth_server=authority is not None, trust_cert_path=authority, check_hostname=False))
    return TlsTunnel(context, server_side=False)


def exchange(one: TlsTunnel, other: TlsTunnel, *, piece: int = 1 << 20) -> tuple[bytes, bytes]:
    """Transfers bytes between both tunnels until neither has outgoing bytes. Returns the bytes that each received."""
    got_one, got_other = [], []
    one.receive(b"")
    while True:
        to_other, to_one = one.take_outgoing(), other.take_outgoing()
        if not to_other and not to_one:
            return b"".join(got_one), b"".join(got_other)
        got_other += [other.receive(to_other[at : at + piece]) for at in range(0, len(to_other), piece)]
        got_one += [one.receive(to_one[at : at + piece]) for at in range(0, len(to_one), piece)]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_bytes_come_through_in_whatever_pieces(server_context: ssl.SSLContext, piece: int) -> None:
    client, server = client_tunnel(), TlsTunnel(server_context, server_side=True)
    client.send(b"sent before the handshake")
    assert exchange(client, server, piece=piece) == (b"", b"sent before the handshake")
    assert client.is_open
    assert server.is_open
    server.send(b"a" * 3000 + b"answer")
    assert exchange(client, server, piece=piece) == (b"a" * 3000 + b"answer", b"")


def test_a_long_message_comes_through_whole(server_context: ssl.SSLContext) -> None:
    client, server = client_tunnel(), TlsTunnel(server_context, server_side=True)
    exchange(client, server)
    message = bytes(range(256)) * 40_000
    client.send(message)
    assert exchange(client, server)[1] == message


def test_the_end_is_told(server_context: ssl.SSLContext) -> None:
    client, server = client_tunnel(), TlsTunnel(server_context, server_side=True)
    exchange(client, server)
    client.send(b"last words")
    client.end()
    assert exchange(client, server)[1] == b"last words"
    assert server.is_ended


def test_a_client_that_does_not_trust_the_certificate_says_so(server_context: ssl.SSLContext, tmp_path: Path) -> None:
    client, server = client_tunnel(Authority(tmp_path, "stranger").cert_path), TlsTunnel(server_context, server_side=True)
    client.receive(b"")
    server.receive(client.take_outgoing())
    with pytest.raises(ssl.SSLCertVerificationError):
        client.receive(server.take_outgoing())
    with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        server.receive(client.take_outgoing())


def test_older_versions_than_tls_1_2_are_refused(server_context: ssl.SSLContext) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    client, server = TlsTunnel(old, server_side=False), TlsTunnel(server_context, server_side=True)
    client.receive(b"")
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        server.receive(client.take_outgoing())


def test_ciphers_of_tls_1_2_have_forward_secrecy(server_context: ssl.SSLContext) -> None:
    names = [cipher["name"] for cipher in server_context.get_ciphers() if cipher["protocol"] == "TLSv1.2"]
    assert names
    assert [name for name in names if not name.startswith("ECDHE")] == []


@pytest.mark.parametrize("data", [b"\x16nonsense", b"\x16\x03\x01\xff\xff" + bytes(70_000), b"\x16\x03\x01\x00\x05hello"])
def test_what_is_no_handshake_is_an_error(server_context: ssl.SSLContext, data: bytes) -> None:
    with pytest.raises(ssl.SSLError):
        TlsTunnel(server_context, server_side=True).receive(data)
