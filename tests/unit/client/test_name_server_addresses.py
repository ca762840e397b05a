"""Tests how a client finds the addresses of the name servers."""

import pytest

from rocketmq_broker.client import IllegalConfiguration
from rocketmq_broker.client.instance.name_servers import name_server_addresses


def test_several_are_joined_by_semicolons() -> None:
    assert name_server_addresses("a:9876; b:9877;a:9876") == ("a:9876", "b:9877")


def test_without_any_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876")
    assert name_server_addresses(None) == ("10.0.0.1:9876",)
    monkeypatch.delenv("NAMESRV_ADDR")
    assert name_server_addresses(None) == ("127.0.0.1:9876",)


def test_ipv6_and_a_scheme_are_understood() -> None:
    assert name_server_addresses("http://mq.example:80;[::1]:9876") == ("mq.example:80", "[::1]:9876")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("localhost", "namesrv_addr: name server 'localhost' has no port (default: localhost:9876)"),
        ("localhost:", "has no host or no port"),
        (":9876", "has no host or no port"),
        ("a:b", "has no host or no port"),
        ("localhost:65536", "has a port that is not between 1 and 65535"),
        ("localhost:0", "has a port that is not between 1 and 65535"),
        ("tcp://localhost:9876", "is a URL"),
        ("http://localhost:9876/", "is a URL"),
        ("127.0.0.1 9876", "contains a space"),
        ("a:1 b:2", "contains a space"),
        ("::1:9876", "is an IPv6 address without brackets"),
        (";", "namesrv_addr ';' contains no address"),
        (9876, "namesrv_addr must be a str, not an int"),
        (["a:9876"], "namesrv_addr must be a str, not a list"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(text: str, sentence: str) -> None:
    with pytest.raises(IllegalConfiguration) as refused:
        name_server_addresses(text)
    assert sentence in str(refused.value)
    assert "expected host:port, or several joined by ';'" in str(refused.value)


def test_a_wrong_address_of_the_environment_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "broker")
    with pytest.raises(IllegalConfiguration, match="environment variable NAMESRV_ADDR: name server 'broker' has no port"):
        name_server_addresses(None)
