"""The broker's registration with one name server, and its timing (part of BrokerController's scheduled tasks)."""

import asyncio
from collections.abc import Awaitable, Callable

from rocketmq_broker.remoting.backoff import Backoff


class NameServerLink:
    """Registers the broker with one name server periodically, after each change, and after the connection has ended.

    When the connection ends, the name server may have restarted and lost all data. The broker therefore registers again
    immediately. If this attempt fails, or the next connection ends too, the pauses between attempts become longer.
    """

    def __init__(self, address: str, register: Callable[[str], Awaitable[bool]], *, period_s: float, backoff: Backoff) -> None:
        """Creates a link. `register` returns True if the name server accepted the registration, and must not raise exceptions."""
        self.address = address
        self.is_registered = False
        """True if the last registration succeeded, and its connection has not been reported as closed since."""
        self._register = register
        self._period_s = period_s
        self._backoff = backoff
        self._is_trusted = True
        self._is_change_wanted = False
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def request(self) -> None:
        """Makes `run` register immediately. Call it after a change."""
        self._is_change_wanted = True
        self._wake.set()

    def connection_ended(self) -> None:
        """Makes `run` register immediately.

        Call it after the connection has ended, because the name server may have lost the registration.
        """
        self.is_registered = False
        self._wake.set()

    async def registered(self) -> None:
        """Registers the broker. Returns when the name server has responded or the request has failed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self.request()
        await done

    async def run(self) -> None:
        """Keeps the broker registered with the name server. Runs until cancelled."""
        while True:
            self._is_change_wanted = False
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            try:
                is_taken = self.is_registered = await self._register(self.address)
            finally:
                for done in waiting:
                    if not done.done():
                        done.set_result(None)
            await self._rest(is_taken=is_taken)

    async def _rest(self, *, is_taken: bool) -> None:
        """Waits until the next registration is due."""
        if is_taken:
            if not await self._is_woken_within(self._period_s):
                self._is_trusted = True
                self._backoff.succeeded()
                return
            if self._is_trusted and not self._is_change_wanted:
                self._is_trusted = False
                return
        if not self._is_change_wanted:
            self._wake.clear()
            await self._is_woken_within(self._backoff.next_pause_s())

    async def _is_woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
