"""Tests of a client's access settings in environment variables."""

from pathlib import Path

import pytest

from rocketmq_broker.client import ClientTls, IllegalConfiguration, Producer, SessionCredentials
from rocketmq_broker.client.instance.access import credentials_of, open_remoting, tls_of


def test_without_a_word_requests_are_neither_signed_nor_encrypted() -> None:
    assert credentials_of({}) is None
    assert tls_of({}) is None
    assert tls_of({"ROCKETMQ_TLS_ENABLE": "false", "ROCKETMQ_TLS_AUTH_SERVER": "nonsense"}) is None


def test_the_secret_comes_from_a_variable_or_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a long secret\n")
    expected = SessionCredentials("orders-key", "a long secret", "token")
    variables = {"ROCKETMQ_ACCESS_KEY": "orders-key", "ROCKETMQ_SECURITY_TOKEN": "token"}
    assert credentials_of({**variables, "ROCKETMQ_SECRET_KEY": "a long secret"}) == expected
    assert credentials_of({**variables, "ROCKETMQ_SECRET_KEY_FILE": str(secret)}) == expected


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ROCKETMQ_ACCESS_KEY": "orders-key"}, "secret key"),
        ({"ROCKETMQ_SECRET_KEY": "hidden"}, "access key"),
        ({"ROCKETMQ_SECRET_KEY": "hidden", "ROCKETMQ_SECRET_KEY_FILE": "/x"}, "both set"),
        ({"ROCKETMQ_SECRET_KEY_FILE": "/no/such/file"}, "ROCKETMQ_SECRET_KEY_FILE=/no/such/file: No such file"),
        ({"ROCKETMQ_TLS_ENABLE": "perhaps"}, "ROCKETMQ_TLS_ENABLE must be true or false, not perhaps"),
        ({"ROCKETMQ_TLS_ENABLE": "true", "ROCKETMQ_TLS_CERT_PATH": "/c"}, "must be set together"),
        ({"ROCKETMQ_TLS_ENABLE": "true", "ROCKETMQ_TLS_TRUST_CERT_PATH": "/no/such/file"}, "/no/such/file: No such file"),
    ],
)
def test_a_mistake_is_named_and_no_secret_is(variables: dict[str, str], words: str) -> None:
    with pytest.raises(IllegalConfiguration) as caught:
        open_remoting(None, None, None, variables)
    assert words in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_tls_comes_from_variables() -> None:
    variables = {
        "ROCKETMQ_TLS_ENABLE": "TRUE",
        "ROCKETMQ_TLS_TRUST_CERT_PATH": "/ca.pem",
        "ROCKETMQ_TLS_CHECK_HOSTNAME": "false",
        "ROCKETMQ_TLS_CERT_PATH": "/c.pem",
        "ROCKETMQ_TLS_KEY_PATH": "/k.pem",
        "ROCKETMQ_TLS_KEY_PASSWORD": "hidden",
    }
    assert tls_of(variables) == ClientTls(
        trust_cert_path="/ca.pem", check_hostname=False, cert_path="/c.pem", key_path="/k.pem", key_password="hidden"
    )


async def test_settings_count_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_TLS_ENABLE", "true")
    monkeypatch.setenv("ROCKETMQ_TLS_TRUST_CERT_PATH", "/no/such/file")
    producer = Producer("orders", tls=False, namesrv_addr="127.0.0.1:1")
    await producer.start()
    await producer.shutdown()
    with pytest.raises(IllegalConfiguration, match="/no/such/other"):
        await Producer("orders", tls=ClientTls(trust_cert_path="/no/such/other"), namesrv_addr="127.0.0.1:1").start()
