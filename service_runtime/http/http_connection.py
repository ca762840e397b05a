"""HTTP connections with time limits for clients. Silent, slow and idle connections are closed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from waitress.channel import HTTPChannel  # type: ignore[import-untyped]


class ConnectionTurn(Enum):
    """The turn of a connection: whether the server or the client must act next, and what the client must do."""

    OURS = "a request is worked on"
    TO_ASK = "nothing was asked yet, or everything is answered"
    TO_END_REQUEST = "a request has begun to arrive"
    TO_READ_ANSWER = "the answer is on its way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time limits in seconds for each turn of a client. A client cannot extend them by sending or reading single bytes."""

    to_ask_s: float = 60.0
    to_end_request_s: float = 20.0
    to_read_answer_s: float = 60.0

    def limit_s(self, turn: ConnectionTurn) -> float | None:
        """Returns the client's time limit, or None if it is not the client's turn."""
        if turn is ConnectionTurn.TO_ASK:
            return self.to_ask_s
        if turn is ConnectionTurn.TO_END_REQUEST:
            return self.to_end_request_s
        return self.to_read_answer_s if turn is ConnectionTurn.TO_READ_ANSWER else None


_FIRST_TO_GO: Final = (ConnectionTurn.TO_ASK, ConnectionTurn.TO_END_REQUEST)


class PatientChannel(HTTPChannel):  # type: ignore[misc]
    """A connection of waitress with time limits for its client.

    waitress alone closes a connection after two minutes without a byte. So an occasional byte keeps a connection open, and enough
    silent connections lock out all other clients until then. Here a client must complete its request and read its response in
    time. Above `crowd` connections, each new one closes the connection that has waited longest.
    """

    patience: Patience
    now_s: Callable[[], float]
    """A monotonic clock in seconds."""
    crowd: int
    """The number of connections above which each new one closes the longest waiting one."""

    def __init__(self, server: Any, sock: Any, addr: Any, adj: Any, map: Any = None) -> None:
        super().__init__(server, sock, addr, adj, map=map)
        self._turn = ConnectionTurn.TO_ASK
        self._request_id = id(None)
        self._since_s = self.now_s()
        self._limit_s: float | None = self.patience.to_ask_s
        if map is not None and len(map) > self.crowd:
            _make_room(one for one in map.values() if isinstance(one, PatientChannel) and one is not self)

    def readable(self) -> bool:
        """Returns True if waitress should read from the connection. Closes the connection first if its time limit has passed.

        The loop of waitress calls this at least once a second, and for each connection whenever any connection is active. The
        clock is therefore not read while the client waits for the server.
        """
        turn = self.turn
        # Each request has its full time, although the loop may never run between two requests of a connection.
        request_id = id(self.request)
        if turn is not self._turn or request_id != self._request_id:
            self._turn, self._request_id, self._since_s = turn, request_id, self.now_s()
            self._limit_s = self.patience.limit_s(turn)
        if self._limit_s is not None and self.now_s() - self._since_s > self._limit_s:
            self._cut_off()
        return bool(super().readable())

    @property
    def turn(self) -> ConnectionTurn:
        """The current turn."""
        if self.total_outbufs_len:
            return ConnectionTurn.TO_READ_ANSWER
        if self.requests:
            return ConnectionTurn.OURS
        return ConnectionTurn.TO_ASK if self.request is None else ConnectionTurn.TO_END_REQUEST

    @property
    def waiting_since_s(self) -> float:
        """The start of the current turn in seconds, on the clock `now_s`."""
        return self._since_s

    def _cut_off(self) -> None:
        self.will_close = True
        # The loop closes a connection when it can write. A client that does not read would keep it open forever.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


def _make_room(channels: Iterable[PatientChannel]) -> None:
    """Closes the longest waiting connection, except those with a running request or an unread answer."""
    waiting = [one for one in channels if one.turn in _FIRST_TO_GO and not one.will_close]
    if waiting:
        min(waiting, key=lambda one: one.waiting_since_s).will_close = True


def patient_channel(patience: Patience, crowd: int, now_s: Callable[[], float]) -> type[PatientChannel]:
    """Returns the connection class for a server with these limits."""
    return type("PatientChannel", (PatientChannel,), {"patience": patience, "crowd": crowd, "now_s": staticmethod(now_s)})
