"""Ports for servers that keep theirs when they are restarted."""

import os
import random
import socket
import threading
from collections import deque
from itertools import islice

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Below the range that outgoing connections take theirs from, so that none takes the port of a server that is down."""
_PORTS_EACH = 200
"""A process looks in a part of its own, so that none chooses the port of another's server that is about to start."""
_APART = 4
_REMEMBERED = 16
_TAKEN_TOGETHER = (-2, 0, 1)
"""A broker takes listenPort - 2 as well, Apache's also listenPort + 1: each port is given with these neighbours."""
_recently_given: deque[int] = deque(maxlen=_REMEMBERED)
"""Their servers may be about to start."""
_one_at_a_time = threading.Lock()


def free_ports(count: int) -> list[int]:
    """As many ports of the loopback address on which nothing listens at this moment, nor on their neighbours.

    None of them was among the last 16 that this process was given. Raises OSError if there are not so many.
    """
    with _one_at_a_time:
        found = _find(count)
        _recently_given.extend(found)
    return found


def _find(count: int) -> list[int]:
    begin = os.getpid() * _PORTS_EACH % len(_BELOW_EPHEMERAL)
    own = _BELOW_EPHEMERAL[begin : begin + _PORTS_EACH]
    candidates = [port for port in own[2::_APART] if port not in _recently_given]
    found = list(islice(filter(_is_free, random.sample(candidates, len(candidates))), count))
    if len(found) < count:
        raise OSError(f"no {count} free ports between {own.start} and {own.stop}")
    return found


def _is_free(port: int) -> bool:
    return not any(_is_taken(port + distance) for distance in _TAKEN_TOGETHER)


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: what ended there a moment ago is no matter
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
