"""TLS handshakes that are not finished. When there is no room for more, who has most of it gives the oldest up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

MOST_HANDSHAKES: Final = 500
"""Handshakes that may be unfinished at a time, over all ports; each takes some 50 KB."""

_NETWORK_GROUPS: Final = 4
"""Of the eight groups of an IPv6 address: whoever has one address has all of its network."""


class Handshakes:
    """By the address that began them. A client finishes its own in milliseconds: whoever is crowded out has left it lying."""

    def __init__(self, most: int = MOST_HANDSHAKES) -> None:
        self._most = most
        self._numbers = count()
        self._by_host: dict[str, dict[int, Callable[[], None]]] = {}
        self._unfinished = 0

    def __len__(self) -> int:
        """How many are not finished."""
        return self._unfinished

    def begin(self, ip: str, give_up: Callable[[], None]) -> Callable[[], None]:
        """One more begins; returns what to call once when it is over, good or bad.

        `give_up` is called, at the latest then, if its room is needed by others; it is over with that.
        """
        if self._unfinished >= self._most:
            self._make_room()
        host, number = _host_of(ip), next(self._numbers)
        self._by_host.setdefault(host, {})[number] = give_up
        self._unfinished += 1
        return lambda: self._end(host, number)

    def _make_room(self) -> None:
        """Gives up the oldest of the address with the most unfinished ones; of equals, of the one that has waited longest."""
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
