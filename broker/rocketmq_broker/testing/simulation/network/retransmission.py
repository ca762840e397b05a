"""Simulates TCP's retransmission to a peer that does not respond."""

import contextvars
import errno
from collections.abc import Callable
from typing import Final

from rocketmq_broker.testing.memory_network import connection_reset
from rocketmq_broker.testing.simulation.network.connection import SimulatedTransport

_FIRST_WAIT_S: Final = 0.2
_MAX_WAIT_S: Final = 120.0
_MAX_TRIES: Final = 15
"""The maximum number of retransmissions, as in Linux's tcp_retries2. After the last one, at 924.6 s, the connection fails."""


def timed_out() -> TimeoutError:
    """Returns the error for a connection whose peer did not respond in time."""
    return TimeoutError(errno.ETIMEDOUT, "Connection timed out")


class Retransmission:
    """Retransmits unacknowledged data with exponential backoff, until the peer responds or the connection times out.

    A machine without power does not respond. Once the machine runs again, its kernel resets the connection.
    """

    def __init__(self, end: SimulatedTransport, context: contextvars.Context, is_answered: Callable[[], bool]) -> None:
        """Creates the retransmission of `end`, one side of a connection. `context` is the `contextvars` context of its kernel.

        `is_answered` returns True if the peer can respond now.
        """
        self._end = end
        self._context = context
        self._is_answered = is_answered
        self._tries = 0
        self._has_begun = False

    def begin(self) -> None:
        """Begins retransmitting. Later calls do nothing."""
        if not self._has_begun:
            self._has_begun = True
            self._try_in(self._end.outgoing.link.latency_s())

    def _try_in(self, seconds: float) -> None:
        self._end.loop.call_later(seconds, self._try, context=self._context)

    def _try(self) -> None:
        if self._end.is_lost:
            return
        if self._is_answered():
            self._end.incoming.send(connection_reset())
        elif self._tries > _MAX_TRIES:
            self._end.break_now(timed_out())
        else:
            self._try_in(min(_FIRST_WAIT_S * 2**self._tries, _MAX_WAIT_S))
            self._tries += 1
