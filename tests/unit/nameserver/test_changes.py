"""Tests which clients may change the data of a name server that runs in its own process."""

from types import SimpleNamespace
from typing import Any

import pytest

from rocketmq_broker.acl.remote_address import RemoteAddresses, parse_remote_addresses
from rocketmq_broker.nameserver.changes import CHANGES, from_addresses, guard_of_changes
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.dispatcher import RequestRefused


def is_let_in(code: int, ip: str, trusted: RemoteAddresses | None = None) -> bool:
    peer: Any = SimpleNamespace(peer_ip=ip)
    try:
        guard_of_changes(from_addresses(trusted))(peer, RemotingCommand(code=code, opaque=1))
    except RequestRefused:
        return False
    return True


@pytest.mark.parametrize("code", sorted(CHANGES))
def test_its_own_machine_changes_what_it_says_and_others_do_not(code: int) -> None:
    assert [ip for ip in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1") if not is_let_in(code, ip)] == []
    assert [ip for ip in ("192.0.2.7", "10.0.0.1", "2001:db8::1", "?", "::ffff:192.0.2.7") if is_let_in(code, ip)] == []


def test_who_is_refused_is_told_what_to_do() -> None:
    peer: Any = SimpleNamespace(peer_ip="192.0.2.7")
    with pytest.raises(RequestRefused, match=r"is not allowed from 192\.0\.2\.7: .*adminAddresses"):
        from_addresses(None)(peer, RemotingCommand(code=RequestCode.DELETE_TOPIC_IN_NAMESRV, opaque=1))


@pytest.mark.parametrize("code", sorted(CHANGES))
def test_addresses_that_the_settings_trust_do_too(code: int) -> None:
    trusted = parse_remote_addresses("192.0.2.*")
    assert is_let_in(code, "192.0.2.7", trusted)
    assert not is_let_in(code, "192.0.3.7", trusted)


@pytest.mark.parametrize(
    "code", [RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.REGISTER_BROKER, RequestCode.GET_KV_CONFIG, 12_345]
)
def test_what_changes_nothing_is_asked_from_everywhere(code: int) -> None:
    assert is_let_in(code, "192.0.2.7")
