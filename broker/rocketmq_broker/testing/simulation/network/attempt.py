"""Simulates a connection attempt, the first half of TCP's handshake between the kernels of both machines."""

import asyncio
import contextvars
import errno
from collections.abc import Callable
from typing import Final

from rocketmq_broker.testing.simulation.network.link import Link
from rocketmq_broker.testing.simulation.network.machines import SimulatedPort
from rocketmq_broker.testing.simulation.network.retransmission import timed_out

CONNECT_TIMEOUT_S: Final = 20.0
_FIRST_WAIT_S: Final = 1.0
"""The delay in seconds before the first retry. As in Linux, retries follow after 1 s, 3 s, 7 s and 15 s."""


class ConnectionAttempt:
    """Requests a connection, and retries until the other machine's kernel responds.

    The kernel responds even if the process on the machine is frozen.
    """

    def __init__(
        self,
        there: Link,
        back: Link,
        context: contextvars.Context,
        port_there: Callable[[], SimulatedPort | None],
        is_dark: Callable[[], bool],
    ) -> None:
        """Creates an attempt. `context` is the `contextvars` context of the kernel.

        `port_there` returns the listening port or None. `is_dark` returns whether the other machine is without power.
        """
        self._there = there
        self._back = back
        self._context = context
        self._port_there = port_there
        self._is_dark = is_dark
        self._loop = asyncio.get_running_loop()
        self._wait_s = _FIRST_WAIT_S
        self._timers: list[asyncio.TimerHandle] = []
        self._answer: asyncio.Future[SimulatedPort] = self._loop.create_future()

    async def port(self) -> SimulatedPort:
        """Returns the port that accepts the connection. Raises ConnectionRefusedError, and TimeoutError after 20 s."""
        self._ask()
        try:
            return await self._answer
        finally:
            for timer in self._timers:
                timer.cancel()

    def _ask(self) -> None:
        self._in(self._there.latency_s(), self._arrive)

    def _arrive(self) -> None:
        if self._answer.done():
            return
        blocked = next((link for link in (self._there, self._back) if link.is_blocked), None)
        if blocked is not None:
            blocked.held_back()
            self._ask_later()
        elif self._is_dark():
            self._ask_later()
        elif (port := self._port_there()) is None:
            self._in(self._back.latency_s(), self._refuse)
        else:
            self._in(self._back.latency_s(), self._accept, port)

    def _ask_later(self) -> None:
        if self._wait_s == _FIRST_WAIT_S:
            self._in(CONNECT_TIMEOUT_S, self._give_up)
        self._in(self._wait_s, self._ask)
        self._wait_s *= 2

    def _in(self, seconds: float, callback: Callable[..., None], *args: object) -> None:
        self._timers.append(self._loop.call_later(seconds, callback, *args, context=self._context))

    def _accept(self, port: SimulatedPort) -> None:
        if not self._answer.done():
            self._answer.set_result(port)

    def _refuse(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))

    def _give_up(self) -> None:
        if not self._answer.done():
            self._answer.set_exception(timed_out())
