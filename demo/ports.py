"""Ports for servers that keep theirs when they are restarted."""

import os
import random
import socket

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Below the range that outgoing connections take theirs from, so that none takes the port of a server that is down."""
_PORTS_EACH = 200
"""A process looks in a part of its own, so that none chooses the port of another's server that is about to start."""


def free_ports(count: int) -> list[int]:
    """As many distinct ports of the loopback address on which nothing listens at this moment."""
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            sockets.append(_bind_anywhere())
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()


def _bind_anywhere() -> socket.socket:
    for port in random.sample(_own_part(), _PORTS_EACH):
        candidate = socket.socket()
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            candidate.close()
        else:
            return candidate
    raise OSError(f"no free port between {_own_part().start} and {_own_part().stop}")


def _own_part() -> range:
    begin = os.getpid() * _PORTS_EACH % len(_BELOW_EPHEMERAL)
    return _BELOW_EPHEMERAL[begin : begin + _PORTS_EACH]
