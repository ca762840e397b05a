"""Closes connections that are idle or whose frame stays incomplete."""

import asyncio
import logging
from collections.abc import Callable

from rocketmq_broker.remoting.limits import ConnectionLimits

logger = logging.getLogger(__name__)


class IdleWatch:
    """Closes a connection when one of its timeouts has expired. A read or write only records its time, and sets no timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: ConnectionLimits) -> None:
        self._loop = loop
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._close: Callable[[], None] | None = None
        self._peer = "?"
        self.moved_s = 0.0
        """The time at which bytes were last received or sent, on the event loop's clock in seconds."""
        self.frame_began_s = 0.0
        """The time at which an incomplete frame began, on the event loop's clock in seconds. 0 if no frame is incomplete."""

    def start(self, peer: str, close: Callable[[], None]) -> None:
        """Starts the watch. After the idle timeout or the timeout of a frame, it logs the reason and calls `close` once."""
        self._peer = peer
        self._close = close
        self.moved_s = self._loop.time()
        self._timer = self._loop.call_later(self._limits.idle_timeout_s, self._look)

    def stop(self) -> None:
        """Stops the watch. Drops the reference to the connection, so that the watch and the connection can be freed."""
        self._close = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        if self._close is None:
            return
        now_s = self._loop.time()
        left_s = self.moved_s + self._limits.idle_timeout_s - now_s
        if self.frame_began_s and now_s - self.frame_began_s > self._limits.frame_timeout_s:
            logger.warning(
                "closing the connection of %s: a frame is incomplete after %.0f s", self._peer, now_s - self.frame_began_s
            )
            self._close()
        elif left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            logger.info("closing the connection of %s: it was idle for %.0f s", self._peer, self._limits.idle_timeout_s)
            self._close()
