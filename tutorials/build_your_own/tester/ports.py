"""Reserves ports for the brokers under test, which are killed and restarted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from demo.ports import free_ports

_held: Final[set[int]] = set()
_holding: Final = threading.Lock()


@contextmanager
def held_port() -> Iterator[int]:
    """Yields a free port. Other calls in this process do not get the same port until the block ends."""
    with _holding:
        port = next(port for (port,) in iter(lambda: free_ports(1), []) if port not in _held)
        _held.add(port)
    try:
        yield port
    finally:
        with _holding:
            _held.remove(port)
