"""Tests of RocketMQ's TLS properties for clients and servers."""

from pathlib import Path

import pytest

from rocketmq_broker.remoting.tls import (
    ClientTls,
    NeedClientAuth,
    ServerContexts,
    ServerTls,
    TlsMode,
    TlsUnusable,
    client_context,
)
from tests.certificates import Authority


def test_without_a_word_a_server_takes_both_kinds_and_has_a_certificate_for_tests() -> None:
    settings = ServerTls.from_properties({})
    assert (settings.mode, settings.test_mode, settings.has_certificate) == (TlsMode.PERMISSIVE, True, True)


def test_a_certificate_that_is_named_is_used() -> None:
    settings = ServerTls.from_properties(
        {"tls.server.certPath": "/c.pem", "tls.server.keyPath": "/k.pem", "tls.server.keyPassword": "hidden", "brokerName": "b"}
    )
    assert settings == ServerTls(cert_path=Path("/c.pem"), key_path=Path("/k.pem"), key_password="hidden")
    assert "hidden" not in repr(settings)
    assert settings.files == [Path("/c.pem"), Path("/k.pem")]


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"tls.server.certPath": "~nobody.at.all/c.pem"}, "tls.server.certPath=~nobody.at.all/c.pem: Could not determine home"),
        ({"tls.server.mode": "strict"}, "tls.server.mode must be one of disabled, permissive, enforcing, not strict"),
        ({"tls.test.mode.enable": "perhaps"}, "tls.test.mode.enable must be true or false, not perhaps"),
        ({"tls.server.certPath": "/c", "tls.server.keyPath": "/k", "tls.test.mode.enable": "true"}, "set only one"),
        ({"tls.server.certPath": "/c"}, "must be set together"),
        ({"tls.server.mode": "enforcing", "tls.test.mode.enable": "false"}, "enforcing requires tls.server.certPath"),
        ({"tls.server.need.client.auth": "require"}, "requires tls.server.trustCertPath"),
        ({"tls.server.need.client.auth": "maybe"}, "one of none, optional, require"),
    ],
)
def test_what_cannot_work_is_named(properties: dict[str, str], words: str) -> None:
    with pytest.raises(TlsUnusable) as caught:
        ServerTls.from_properties(properties)
    assert words in str(caught.value)


def test_a_disabled_server_needs_nothing() -> None:
    assert ServerTls.from_properties({"tls.server.mode": "disabled", "tls.server.certPath": "/c"}).mode is TlsMode.DISABLED


def test_a_client_speaks_tls_only_if_asked_and_then_makes_sure_of_the_server() -> None:
    assert ClientTls.from_properties({"tls.client.trustCertPath": "/ca.pem"}) is None
    assert ClientTls.from_properties({"tls.enable": "true"}) == ClientTls()
    assert ClientTls.from_properties({"tls.enable": "true", "tls.test.mode.enable": "true"}) == ClientTls(auth_server=False)
    everything = {
        "tls.enable": "TRUE",
        "tls.client.trustCertPath": "/ca.pem",
        "tls.client.authServer": "true",
        "tls.client.checkHostname": "false",
        "tls.client.certPath": "/c.pem",
        "tls.client.keyPath": "/k.pem",
        "tls.client.keyPassword": "hidden",
    }
    assert ClientTls.from_properties(everything) == ClientTls(
        trust_cert_path=Path("/ca.pem"),
        check_hostname=False,
        cert_path=Path("/c.pem"),
        key_path=Path("/k.pem"),
        key_password="hidden",
    )


def test_a_client_certificate_without_key_is_refused() -> None:
    with pytest.raises(TlsUnusable, match="must be set together"):
        ClientTls(cert_path="/c.pem")


async def test_unusable_files_are_named_on_one_line(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.sign("one", password="a password"), authority.sign("other")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate")
    unusable = [
        (ServerTls(cert_path=tmp_path / "none.pem", key_path=other.key_path), "none.pem: No such file"),
        (ServerTls(cert_path=nonsense, key_path=other.key_path), "nonsense.pem"),
        (ServerTls(cert_path=one.cert_path, key_path=other.key_path), "the key does not match the certificate"),
        (ServerTls(cert_path=one.cert_path, key_path=one.key_path), "one.key"),
        (ServerTls(cert_path=one.cert_path, key_path=one.key_path, key_password="wrong"), "one.key"),
        (ServerTls(cert_path=other.cert_path, key_path=other.key_path, trust_cert_path=nonsense), "nonsense.pem"),
    ]
    for settings, words in unusable:
        with pytest.raises(TlsUnusable) as caught:
            ServerContexts(settings)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "wrong" not in str(caught.value).replace("is wrong", "")
    with pytest.raises(TlsUnusable, match=r"nonsense\.pem"):
        client_context(ClientTls(trust_cert_path=nonsense))
    settings = ServerTls(
        cert_path=one.cert_path, key_path=one.key_path, key_password="a password", need_client_auth=NeedClientAuth.REQUIRE,
        trust_cert_path=authority.cert_path,
    )  # fmt: skip
    assert ServerContexts(settings).current is not None
