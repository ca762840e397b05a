"""Chooses ports for servers that use the same ports again after a restart."""

import os
import random
import socket
import threading
from itertools import islice
from typing import Final

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""The ports to choose from.

They are below the ephemeral range, so that no outgoing connection takes the port of a server that is down.
"""
_PORTS_EACH = 200
"""The number of ports that each process searches, so that two processes do not choose the same port."""
_APART = 4
_TAKEN_TOGETHER = (-2, 0, 1)
"""The offsets of the neighbours of a port that must be free too.

A broker also uses listenPort - 2, and Apache's broker listenPort + 1.
"""


_given: Final[dict[int, list[int]]] = {}
"""Maps each process id to the ports of its part of the range. The least recently used ports are first."""
_claims: Final[list[socket.socket]] = []
"""The sockets that mark the parts of the range that this process has claimed."""
_giving: Final = threading.Lock()


def free_ports(count: int) -> list[int]:
    """Returns `count` ports of the loopback address that are free now, and whose neighbours are free too.

    A broker on a port also uses the neighbours port - 2 and port + 1. A port is returned again only after all other
    ports, because its server may not listen yet. Raises OSError if too few ports are free.
    """
    with _giving:
        ports = _ports_of_this_process()
        found = list(islice(filter(_is_free, ports), count))
        if len(found) < count:
            raise OSError(
                f"not enough free ports between {min(ports)} and {max(ports)}: found {len(found)}, need {count}; "
                "stop programs that use them"
            )
        ports[:] = [port for port in ports if port not in found] + found
    return found


def free_ports_of_brokers(brokers: int, apart: int) -> int:
    """Returns a listenPort for the first of `brokers` brokers. The listenPorts of consecutive brokers differ by `apart`.

    All of these ports and their neighbours are free. They are returned again only after all other ports. Raises OSError
    if too few ports are free.
    """
    reach = (brokers - 1) * apart
    with _giving:
        ports = _ports_of_this_process()

        def row_of(first: int) -> range:
            return range(first + min(_TAKEN_TOGETHER), first + reach + max(_TAKEN_TOGETHER) + 1)

        def given_with(first: int) -> list[int]:
            row = row_of(first)
            return [port for port in ports if any(port + distance in row for distance in _TAKEN_TOGETHER)]

        firsts = [port for port in ports if port + reach <= max(ports)]
        for first in sorted(firsts, key=lambda port: max(map(ports.index, given_with(port)))):  # the longest unused row
            if not any(map(is_taken, row_of(first))):
                given = given_with(first)
                ports[:] = [port for port in ports if port not in given] + given
                return first
    raise OSError(
        f"no free ports for {brokers} brokers, {apart} apart, between {min(ports)} and {max(ports)}: stop programs that use them"
    )


def _ports_of_this_process() -> list[int]:
    pid = os.getpid()
    if pid not in _given:
        _given[pid] = _claimed_ports()
    return _given[pid]


def _claimed_ports() -> list[int]:
    """Claims a part of the range that no other process has claimed, for the lifetime of this process.

    A bound UDP socket marks the claim, because the operating system releases it with the process. Returns the claimed ports.
    """
    parts = len(_BELOW_EPHEMERAL) // _PORTS_EACH
    for number in range(parts):
        begin = (os.getpid() + number) % parts * _PORTS_EACH
        own = _BELOW_EPHEMERAL[begin : begin + _PORTS_EACH]
        claim = socket.socket(type=socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", own[0]))
        except OSError:
            claim.close()
        else:
            _claims.append(claim)
            ports = own[2::_APART]
            return random.sample(ports, len(ports))
    raise OSError(f"all ports between {_BELOW_EPHEMERAL[0]} and {_BELOW_EPHEMERAL[-1]} are claimed by {parts} other processes")


def _is_free(port: int) -> bool:
    return not any(is_taken(port + distance) for distance in _TAKEN_TOGETHER)


def is_taken(port: int) -> bool:
    """Returns True if a program listens on the port of the loopback address."""
    with socket.socket() as probe:
        # Servers set this option too. Recently closed connections then do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
