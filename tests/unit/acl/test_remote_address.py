"""Tests the entries of white lists against RocketMQ's RemoteAddressStrategyFactory."""

import pytest

from rocketmq_broker.acl.errors import AccountMistake
from rocketmq_broker.acl.remote_address import parse_remote_addresses


@pytest.mark.parametrize(
    ("text", "address", "is_matched"),
    [
        ("", "127.0.0.1", False),
        ("   ", "127.0.0.1", False),
        ("*", "10.1.2.3", True),
        ("*.*.*.*", "10.1.2.3", True),
        ("*:*:*:*:*:*:*:*", "2001:db8::1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1,127.0.0.2", "127.0.0.2", True),
        ("127.0.0.1,127.0.0.2", "127.0.0.3", False),
        ("127.0.0.{1,2,3}", "127.0.0.3", True),
        ("127.0.0.{1,2,3}", "127.0.0.4", False),
        ("10.10.103.*", "10.10.103.255", True),
        ("10.10.103.*", "10.10.104.1", False),
        ("10.10.*.*", "10.10.104.1", True),
        ("10.10.3-7.*", "10.10.7.200", True),
        ("10.10.3-7.*", "10.10.8.200", False),
        ("192.168.0.5-9", "192.168.0.5", True),
        ("192.168.0.5-9", "192.168.0.10", False),
        ("192.168.0.*", "2001:db8::1", False),
        ("2001:db8::1", "2001:DB8:0:0:0:0:0:1", True),
        ("2001:db8::1", "2001:db8::2", False),
        ("2001:db8::{1,a}", "2001:db8::a", True),
        ("2001:db8::*", "2001:db8::abcd", True),
        ("2001:db8::*", "2001:db8::1:abcd", False),
        ("2001:db8::5:*", "2001:db8:0:0:0:0:5:9", True),
        ("2001:db8:1:2:3:4:5-a:*", "2001:db8:1:2:3:4:9:1", True),
        ("2001:db8:1:2:3:4:5-a:*", "2001:db8:1:2:3:4:b:1", False),
        ("2001:db8::7-9", "2001:db8::8", True),
        ("fe80::1", "fe80::1%eth0", True),
    ],
)
def test_an_entry_matches_the_addresses_it_names(text: str, address: str, is_matched: bool) -> None:
    assert parse_remote_addresses(text).match(address) is is_matched


@pytest.mark.parametrize(
    "text",
    [
        "localhost",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.9-5",
        "10.0.0.-5",
        "10.0.0.5-",
        "10.*.0.1",
        "10.0.5-9.1",
        "*.0.0.1",
        "10.0.0.1,",
        "10.0.0.1,10.0.0.*x",
        "10.0.0.1}",
        "10.0.0{1,2}",
        "10.0.0.{}",
        "10.0.0.1_0-20",
        "2001:db8:::1",
        "2001:db8::*:1",
        "2001:db8::12345",
        "1:2:3:4:5:6:7:8:*",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AccountMistake, match=r"10\.0\.0\.\*"):
        parse_remote_addresses(text)
