"""An event loop with simulated time: timers fire when the test advances the time."""

import asyncio
from collections.abc import Callable
from typing import Any, cast


class Timer:
    def __init__(self, when_s: float, callback: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._when_s = when_s
        self.callback = callback
        self.arguments = arguments
        self.is_cancelled = False

    def when(self) -> float:
        return self._when_s

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """The parts of an event loop that connections use: its clock, timers and futures."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[Timer] = []

    def as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[..., Any], *arguments: Any) -> Timer:
        timer = Timer(when_s, callback, arguments)
        self.timers.append(timer)
        return timer

    def call_later(self, delay_s: float, callback: Callable[..., Any], *arguments: Any) -> Timer:
        return self.call_at(self.now_s + delay_s, callback, *arguments)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    @property
    def waiting(self) -> list[Timer]:
        """The timers that may still fire."""
        return [timer for timer in self.timers if not timer.is_cancelled]

    def pass_time(self, seconds: float) -> None:
        """Advances the time, and fires each timer when it is due."""
        end_s = self.now_s + seconds
        while due := [timer for timer in self.waiting if timer.when() <= end_s]:
            first = min(due, key=Timer.when)
            self.timers.remove(first)
            self.now_s = max(self.now_s, first.when())
            first.callback(*first.arguments)
        self.now_s = end_s
