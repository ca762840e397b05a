"""The unfinished TLS handshakes. When there are too many, the address with the most of them loses its oldest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

MAX_HANDSHAKES: Final = 500
"""Unfinished handshakes at a time, over all ports; each takes some 50 KB."""

_NETWORK_GROUPS: Final = 4
"""Groups, of the eight in an IPv6 address, that count as one client: an address's owner has its whole network."""


class Handshakes:
    """The unfinished handshakes by address. A client finishes its own in milliseconds: those pushed out were abandoned."""

    def __init__(self, most: int = MAX_HANDSHAKES) -> None:
        self._most = most
        self._numbers = count()
        self._by_host: dict[str, dict[int, Callable[[], None]]] = {}
        self._unfinished = 0

    def __len__(self) -> int:
        """Returns the number of unfinished handshakes."""
        return self._unfinished

    def begin(self, ip: str, give_up: Callable[[], None]) -> Callable[[], None]:
        """Adds a handshake. Returns a callback for its end, good or bad, to be called once.

        `give_up` is called if others need its room; the handshake has then ended.
        """
        if self._unfinished >= self._most:
            self._make_room()
        host, number = _host_of(ip), next(self._numbers)
        self._by_host.setdefault(host, {})[number] = give_up
        self._unfinished += 1
        return lambda: self._end(host, number)

    def _make_room(self) -> None:
        """Ends the oldest handshake of the address with the most; among equal addresses, of the one with the longest wait."""
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
