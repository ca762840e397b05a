"""HTTP connections with a time limit for requests, so that slow and silent clients cannot exhaust all connections.

By default, uvicorn waits without limit for the rest of a request. When waiting connections reach its connection
limit, uvicorn responds to all further requests with status 503.
"""

import asyncio
from collections import Counter
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 200
_WAITING_STATES: Final = (h11.IDLE, h11.SEND_BODY)


class PatientProtocol(H11Protocol):
    """A connection that is closed if a request is not complete within a time limit. Further bytes do not extend the limit.

    If there are more than `max_connections` connections, the address with the most connections is selected, and the
    connection of this address that has waited longest is closed. Connections with a request in progress or a live page
    are not closed.
    """

    request_timeout_s: float = 20.0
    max_connections: int = MAX_CONNECTIONS * 3 // 4

    waiting_since_s: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the connection waits for the client to begin or complete a request."""
        return self.conn.their_state in _WAITING_STATES

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the time limit of the first request. Closes a waiting connection if there are too many connections."""
        super().connection_made(transport)
        self._restart_wait()
        if len(self.connections) > self.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Cancels the time limit once the request is complete."""
        super().data_received(data)
        if not self.is_waiting:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Starts the time limit of the next request."""
        super().on_response_complete()
        self._restart_wait()

    def _restart_wait(self) -> None:
        self._stop_waiting()
        if not self.is_waiting:
            return
        self.waiting_since_s = self.loop.time()
        self._timer = self.loop.call_later(self.request_timeout_s, self._give_up)

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
