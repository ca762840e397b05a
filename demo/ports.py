"""Ports for servers that keep theirs when they are restarted."""

import random
import socket

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Below the range that outgoing connections take theirs from, so that none takes the port of a server that is down."""


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
    for port in random.sample(_BELOW_EPHEMERAL, 200):
        candidate = socket.socket()
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            candidate.close()
        else:
            return candidate
    raise OSError(f"no free port between {_BELOW_EPHEMERAL.start} and {_BELOW_EPHEMERAL.stop}")
