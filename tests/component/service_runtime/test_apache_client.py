"""Apache's Python client as the services use it: what keeps it from starting, and messages in both forms."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rocketmq_broker.client import ClientError, IllegalConfiguration, Message
from service_runtime.messaging.apache_client import apache_client, client_settings, of_apache, open_client, to_apache


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the client writes its log there
    pytest.importorskip("rocketmq", reason="Apache's Python client is not installed")


def test_a_client_that_is_not_installed_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocketmq", None)
    with pytest.raises(IllegalConfiguration, match=r"not installed .*: pip install rocketmq-python-client==5\.1\.2$"):
        apache_client()


def test_a_log_that_it_cannot_open_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_log(name: str) -> None:
        raise ValueError("Unable to configure handler 'file'") from PermissionError(13, "Permission denied", "/root/logs")

    monkeypatch.setattr("service_runtime.messaging.apache_client.import_module", no_log)
    with pytest.raises(IllegalConfiguration, match=r"~/logs/rocketmq_python: .*Permission denied: '/root/logs'"):
        apache_client()


@pytest.mark.usefixtures("_installed")
def test_account_tls_and_whole_seconds_come_from_the_environment_and_the_settings() -> None:
    environment = {"ROCKETMQ_ACCESS_KEY": "orders", "ROCKETMQ_SECRET_KEY": "s3cret-key", "ROCKETMQ_TLS_ENABLE": "true"}
    made = client_settings("127.0.0.1:8081", 2001, environment)
    configuration = made["client_configuration"]
    assert (configuration.credentials.ak, configuration.credentials.sk) == ("orders", "s3cret-key")
    assert (configuration.request_timeout, made["tls_enable"]) == (3, True)
    without = client_settings("127.0.0.1:8081", 3000, {})
    assert (without["client_configuration"].credentials.ak, without["tls_enable"]) == ("", False)


@pytest.mark.usefixtures("_installed")
def test_endpoints_that_it_does_not_take_are_named() -> None:
    with pytest.raises(IllegalConfiguration, match="does not accept the endpoints 'a:1;b:2': Multiple addresses"):
        client_settings("a:1;b:2", 3000, {})


@pytest.mark.usefixtures("_installed")
def test_what_it_says_at_the_start_is_an_error_of_the_client() -> None:
    with pytest.raises(ClientError, match="did not start: message_listener should not be null"):
        open_client(
            "PushConsumer", **client_settings("127.0.0.1:1", 1000, {}), consumer_group="g", message_listener=None, subscription={}
        )


@pytest.mark.usefixtures("_installed")
def test_a_message_keeps_tag_keys_and_properties_in_both_directions() -> None:
    sent = Message.of("orders", b"body", tags="created", keys=["order-1"], user_properties={"requestId": "r-1"})
    theirs = to_apache(sent)
    theirs.message_id = "id-1"
    back = of_apache(theirs)
    assert (back.topic, back.body, back.tags, back.keys) == ("orders", b"body", "created", ("order-1",))
    assert (back.properties["requestId"], back.message_id, back.transaction_id) == ("r-1", "id-1", "id-1")
    assert back.reconsume_times == 0
