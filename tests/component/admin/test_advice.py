"""Tests of the doctor's advice to users who are denied access."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.admin.errors import CannotAsk
from rocketmq_broker.admin.health.advice import about_connection, about_refusal, unused_tls
from rocketmq_broker.remoting.errors import CertificateRefused, ConnectFailed, ConnectionClosed, HandshakeFailed
from rocketmq_broker.testing import SyncRocketMQ


def failed_because_of(error: Exception) -> Exception:
    """Returns the error as commands receive it, wrapped in two other errors."""
    outer, inner = CannotAsk("it cannot be asked"), CannotAsk("no answer")
    outer.__cause__, inner.__cause__ = inner, error
    return outer


@pytest.mark.parametrize(
    ("error", "variable"),
    [
        (CertificateRefused("self-signed"), "ROCKETMQ_TLS_TRUST_CERT_PATH to the certificate that signed this one"),
        (HandshakeFailed("no handshake"), "ROCKETMQ_TLS_ENABLE=false"),
        (ConnectionClosed("the connection is closed"), "ROCKETMQ_TLS_ENABLE=true"),
    ],
)
def test_a_mistake_with_tls_names_the_variable_that_mends_it(error: Exception, variable: str) -> None:
    assert variable in (about_connection(failed_because_of(error)) or "")


def test_where_nobody_listens_tls_is_not_blamed() -> None:
    assert about_connection(failed_because_of(ConnectFailed("Connection refused"))) is None
    assert about_connection(None) is None


@pytest.mark.parametrize(
    ("remark", "advice"),
    [
        ("No accessKey is configured", "set ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY to those of an admin account"),
        ("No acl config for shop", "correct ROCKETMQ_ACCESS_KEY"),
        ("Check signature failed for accessKey=shop", "correct ROCKETMQ_SECRET_KEY"),
        ("Need admin permission for request code=28, but accessKey=shop is not", "`admin: true`"),
        ("something else", "Use an admin account"),
    ],
)
def test_each_refusal_of_an_account_has_its_own_advice(remark: str, advice: str) -> None:
    assert advice in about_refusal(f"broker 127.0.0.1:10911: org.apache.rocketmq.acl.common.AclException: {remark}")


@pytest.mark.parametrize(
    ("environment", "is_wrong"),
    [
        ({}, False),
        ({"ROCKETMQ_TLS_TRUST_CERT_PATH": "/ca.pem"}, True),
        ({"ROCKETMQ_TLS_TRUST_CERT_PATH": ""}, False),
        ({"ROCKETMQ_TLS_TRUST_CERT_PATH": "/ca.pem", "ROCKETMQ_TLS_ENABLE": "true"}, False),
        ({"ROCKETMQ_TLS_TRUST_CERT_PATH": "/ca.pem", "ROCKETMQ_TLS_ENABLE": "false"}, False),
    ],
)
def test_a_certificate_without_tls_is_named(environment: Mapping[str, str], is_wrong: bool) -> None:
    assert [finding.is_wrong for finding in unused_tls(environment)] == [True] * is_wrong


def test_two_settings_without_effect_are_named_together() -> None:
    (found,) = unused_tls({"ROCKETMQ_TLS_CERT_PATH": "/a.pem", "ROCKETMQ_TLS_KEY_PATH": "/a.key"})
    assert found.what.startswith("ROCKETMQ_TLS_CERT_PATH, ROCKETMQ_TLS_KEY_PATH are set without")


def diagnosis(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "doctor"])
    assert (result.exit_code, result.stderr) == (1, ""), (result.output, result.exc_info)
    return result.stdout


class TestWithAccounts:
    @pytest.fixture
    def rocketmq_settings(self, tmp_path: Path) -> Mapping[str, object]:
        accounts = (
            "accounts:\n- accessKey: shop-key\n  secretKey: shop-secret\n- accessKey: admin-key\n  secretKey: admin-secret\n"
        )
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "plain_acl.yml").write_text(f"{accounts}  admin: true\n")
        return {"aclEnable": "true", "rocketmqHome": str(tmp_path)}

    @pytest.mark.parametrize(
        ("key", "secret", "words"),
        [
            (None, None, "It requires an account (aclEnable=true)"),
            ("nobody-key", "nobody-secret", "has no account with this access key"),
            ("shop-key", "other-secret", "The secret key does not match the one"),
            ("shop-key", "shop-secret", "This account is not an admin account"),
        ],
    )
    def test_the_mistake_is_named(
        self, rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch, key: str | None, secret: str | None, words: str
    ) -> None:
        if key is not None and secret is not None:
            monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", key)
            monkeypatch.setenv("ROCKETMQ_SECRET_KEY", secret)
        assert words in diagnosis("-n", rocketmq.namesrv_addr)


def test_a_peer_that_ends_the_connection_may_want_tls() -> None:
    async def closing() -> str:
        async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.to_thread(diagnosis, "-b", f"127.0.0.1:{port}")

    assert "set ROCKETMQ_TLS_ENABLE=true for this tool" in asyncio.run(closing())


def test_a_peer_without_tls_is_named_so(rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_TLS_ENABLE", "true")
    assert "set ROCKETMQ_TLS_ENABLE=false for this tool" in diagnosis("-n", rocketmq.namesrv_addr)
