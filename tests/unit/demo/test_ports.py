"""Ports that servers of the demo and of the tests get."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from demo import ports as module
from demo.ports import free_ports


def test_no_port_is_one_that_a_broker_on_another_takes_as_well() -> None:
    ports = free_ports(20)
    taken_by_brokers = [port + distance for port in ports for distance in (-2, 0, 1)]
    assert len(set(taken_by_brokers)) == len(taken_by_brokers)


def test_a_port_whose_vip_channel_is_in_use_is_not_given() -> None:
    (port,) = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port - 2))
        taken.listen()
        module._recently_given.clear()
        assert port not in free_ports(30)


def test_who_asks_next_before_a_server_started_gets_other_ports() -> None:
    with ThreadPoolExecutor() as threads:
        given = [port for ports in threads.map(free_ports, [2] * 8) for port in ports]
    assert len(set(given)) == len(given) == 16
