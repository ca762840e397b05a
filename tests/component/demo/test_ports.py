"""Tests of the ports that are chosen for servers of the demo and of the tests."""

import os
import socket
import subprocess
import sys

from demo.ports import free_ports, free_ports_of_brokers


def test_no_port_is_one_that_a_broker_on_another_takes_as_well() -> None:
    ports = free_ports(20)
    taken_by_brokers = [port + distance for port in ports for distance in (-2, 0, 1)]
    assert len(set(taken_by_brokers)) == len(taken_by_brokers)


def test_a_port_whose_vip_channel_is_in_use_is_not_given() -> None:
    (port,) = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port - 2))
        taken.listen()
        assert port not in free_ports(30)


def test_a_port_is_not_given_again_while_others_are_left_though_nobody_listens_on_it_yet() -> None:
    given = [port for _ in range(8) for port in free_ports(5)]
    assert len(set(given)) == len(given)


def test_a_row_of_ports_keeps_clear_of_ports_that_were_given_before() -> None:
    given = free_ports(5)
    first = free_ports_of_brokers(2, 4)
    row = range(first - 2, first + 4 + 2)
    assert not [port for port in given if any(port + distance in row for distance in (-2, 0, 1))]


def test_two_processes_search_different_ports() -> None:
    mine = {port // 200 for port in free_ports(3)}
    program = f"import os; os.getpid = lambda: {os.getpid()}; from demo.ports import free_ports; print(*free_ports(3))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert mine.isdisjoint(int(port) // 200 for port in printed.split())


def test_a_process_claims_one_part_however_often_it_asks() -> None:
    parts = {port // 200 for _ in range(10) for port in free_ports(3)}
    assert len(parts) == 1
