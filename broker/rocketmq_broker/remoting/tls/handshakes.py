"""Limits the number of unfinished TLS handshakes.

Beyond the limit, ends the oldest handshake of the address that has the most unfinished handshakes.
"""

from collections.abc import Callable
from itertools import count
from typing import Final

MAX_HANDSHAKES: Final = 500
"""The maximum number of unfinished handshakes on all ports together. Each takes about 50 KB."""

_NETWORK_GROUPS: Final = 4
"""The number of 16-bit groups of an IPv6 address that identify a client, because a client usually owns a whole /64 network."""


class Handshakes:
    """The unfinished handshakes, grouped by address.

    Clients finish a handshake within milliseconds, so handshakes that are ended here were probably abandoned.
    """

    def __init__(self, max_count: int = MAX_HANDSHAKES) -> None:
        self._max_count = max_count
        self._numbers = count()
        self._by_host: dict[str, dict[int, Callable[[], None]]] = {}
        self._unfinished = 0

    def __len__(self) -> int:
        """Returns the number of unfinished handshakes."""
        return self._unfinished

    def begin(self, ip: str, give_up: Callable[[], None]) -> Callable[[], None]:
        """Adds a handshake. Returns a function to call once when the handshake has succeeded or failed.

        `give_up` is called if the handshake is ended to make room for others.
        """
        if self._unfinished >= self._max_count:
            self._make_room()
        host, number = _host_of(ip), next(self._numbers)
        self._by_host.setdefault(host, {})[number] = give_up
        self._unfinished += 1
        return lambda: self._end(host, number)

    def _make_room(self) -> None:
        """Ends the oldest handshake of the address with the most handshakes.

        If there are several such addresses, ends the oldest of all their handshakes.
        """
        host, lying = max(self._by_host.items(), key=lambda entry: (len(entry[1]), -next(iter(entry[1]))))
        number, give_up = next(iter(lying.items()))
        self._end(host, number)
        give_up()

    def _end(self, host: str, number: int) -> None:
        lying = self._by_host.get(host)
        if lying is None or lying.pop(number, None) is None:
            return
        self._unfinished -= 1
        if not lying:
            del self._by_host[host]


def _host_of(ip: str) -> str:
    return ":".join(ip.split(":")[:_NETWORK_GROUPS]) if ":" in ip and "." not in ip else ip
