"""The number of unfinished TLS handshakes is limited, without blocking peers that finish their handshakes."""

import pytest

from rocketmq_broker.remoting.tls.handshakes import Handshakes


def begun(handshakes: Handshakes, ip: str, given_up: list[str], name: str) -> None:
    handshakes.begin(ip, lambda: given_up.append(name))


def test_who_has_most_of_the_room_gives_its_oldest_up() -> None:
    handshakes, given_up = Handshakes(4), list[str]()
    begun(handshakes, "192.0.2.1", given_up, "honest and slow")
    for number in range(100):
        begun(handshakes, "192.0.2.66", given_up, f"attacker {number}")
    assert given_up == [f"attacker {number}" for number in range(97)]
    assert len(handshakes) == 4


def test_of_equals_the_one_that_waited_longest_goes_first() -> None:
    handshakes, given_up = Handshakes(3), list[str]()
    for number in range(6):
        begun(handshakes, f"192.0.2.{number}", given_up, str(number))
    assert given_up == ["0", "1", "2"]


def test_what_is_over_has_left_its_room_once() -> None:
    handshakes, given_up = Handshakes(2), list[str]()
    over = handshakes.begin("192.0.2.1", lambda: given_up.append("never"))
    over()
    over()
    assert len(handshakes) == 0
    for name in ("a", "b"):
        begun(handshakes, "192.0.2.1", given_up, name)
    assert given_up == []


@pytest.mark.parametrize("others", ["2001:db8:0:1:{}::1", "2001:db8:0:1::{}"])
def test_a_network_of_ipv6_is_one_address(others: str) -> None:
    handshakes, given_up = Handshakes(10), list[str]()
    begun(handshakes, "2001:db8:0:2::1", given_up, "honest")
    for number in range(1, 50):
        begun(handshakes, others.format(number), given_up, "attacker")
    assert "honest" not in given_up
