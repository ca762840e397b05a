"""Tests of the ports that `make up` uses."""

import socket

import pytest

from demo.errors import DemoError
from demo.system import Ports
from demo.up.running import usable_grpc_ports, usable_ports


def test_a_port_of_0_becomes_a_free_one_and_others_stay() -> None:
    free = Ports.free()
    chosen = usable_ports(free._replace(redis=0, credit=0))
    assert (chosen.broker, chosen.namesrv, chosen.order) == (free.broker, free.namesrv, free.order)
    assert 0 not in chosen


def test_a_port_that_somebody_has_is_named_with_its_option() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DemoError, match=rf"{port} \(--order-port\)"):
            usable_ports(Ports.free()._replace(order=port))


def test_each_broker_has_a_port_for_clients_of_rocketmq_5_if_they_are_wanted() -> None:
    assert usable_grpc_ports(None) == []
    first, second = usable_grpc_ports(0, brokers=2)
    assert (second - first, usable_grpc_ports(first, brokers=2)) == (1, [first, second])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", second))
        taken.listen()
        with pytest.raises(DemoError, match=rf"{second} \(--grpc-port\)"):
            usable_grpc_ports(first, brokers=2)
