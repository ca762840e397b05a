"""HTTP connections with bounded waits: half requests and silent clients make room for others.

uvicorn alone waits without end for the rest of a request, and answers 503 while such connections take all places.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 200
_THEIR_TURN: Final = (h11.IDLE, h11.SEND_BODY)


class PatientProtocol(H11Protocol):
    """A connection whose client must end its request in time: bytes that trickle in do not prolong it.

    A new connection above the limit replaces the one that has waited longest, of the address with the most connections. Requests
    in work and live pages keep theirs.
    """

    to_end_request_s: float = 20.0
    crowd: int = MAX_CONNECTIONS * 3 // 4

    waiting_since_s: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the client has to begin or end a request."""
        return self.conn.their_state in _THEIR_TURN

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts waiting for the first request. Closes the longest waiting connection if there are too many."""
        super().connection_made(transport)
        self._wait_anew()
        if len(self.connections) > self.crowd:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting for the client."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stops waiting once the request is complete."""
        super().data_received(data)
        if not self.is_waiting:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Waits for the next request, with its full time."""
        super().on_response_complete()
        self._wait_anew()

    def _wait_anew(self) -> None:
        self._stop_waiting()
        if not self.is_waiting:
            return
        self.waiting_since_s = self.loop.time()
        self._timer = self.loop.call_later(self.to_end_request_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.is_waiting:
            self.transport.abort()

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, PatientProtocol) and one is not self]
        counts = Counter(_address(one) for one in others)
        waiting = [one for one in others if one.is_waiting and not one.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda one: (-counts[_address(one)], one.waiting_since_s)).transport.abort()


def _address(connection: PatientProtocol) -> str:
    return connection.client[0] if connection.client is not None else ""
