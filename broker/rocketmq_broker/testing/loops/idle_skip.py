"""Skips long idle periods, in which only maintenance timers of an idle broker and its clients would fire.

After a skip, maintenance continues at the same minutes of the hour as before. Timers that renew registrations fire
first: the broker registers, clients send heartbeats and renew locks, and pending pulls receive responses. The checks
for silent clients and brokers fire later. Statistics are sampled at each of their times within the skipped period, as
far back as they are kept.

A skip ends before any timer that is not listed here as maintenance, such as a timer of the test, and before the
expiry of files. No time is skipped while a thread works. A maintenance timer that is missing from the list makes
tests slower, but never changes results.
"""

import asyncio
import heapq
from typing import Any, Final, NamedTuple

from rocketmq_broker.remoting.connections.idle_watch import IdleWatch
from rocketmq_broker.remoting.connections.own_requests import OwnRequests
from rocketmq_broker.remoting.tasks import RepeatedCall
from rocketmq_broker.testing.virtual_time import VirtualTime

QUIET_S: Final = 1200.0
"""The time in seconds that passes normally before and after each skip. It exceeds all timeouts of connections and clients."""
MIN_LEAP_S: Final = 3600.0
"""The minimum skip in seconds: a multiple of all maintenance intervals. Each skip is a multiple of this time."""
MAX_INTERVAL_S: Final = 300.0
"""The maximum delay of a maintenance timer, in seconds. A timer that is due later never counts as maintenance."""
_LOOKED_BACK_S: Final = 50 * 3600.0
"""The maximum age, in seconds, of the statistics samples that a skip takes.

The hourly samples of a day are needed, and one at the midnight before them.
"""
_STEP_S: Final = 0.001
_AFTER_ARRIVAL_S: Final = 0.05

_CALLS: Final = frozenset(
    {
        "closing silent clients",
        "delay offsets to disk",
        "expired parked messages",
        "figures of topics and groups",
        "flush",
        "following the wall clock",
        "removal of expired brokers",
        "statistics",
        "storing times",
        "the pop log",
        "the store's lock",
    }
)
"""The names of the periodic maintenance calls of broker and name server."""
_SAMPLES: Final = frozenset({"figures of topics and groups", "statistics"})
_IN_STEP: Final = -1
_TASKS: Final = {
    ("registration", "NameServerLink.run"): 0,
    ("client-heartbeats", "Heartbeats._beat"): 1,
    ("answering overdue pulls", "_repeat_when_due"): 2,
    ("client-routes", "Routes._poll"): 3,
    ("client-queue-locks", "OwnQueueLocks._renew"): 4,
    ("checkpoint", "Checkpoints.run"): _IN_STEP,
    ("client-offsets", "PushConsumer._persist_offsets"): _IN_STEP,
    ("client-rebalance", "Rebalance.run"): _IN_STEP,
    ("forgetting expired locks", "Broker._forget_locks"): _IN_STEP,
    ("notes of transactions", "TransactionNotes.keep"): _IN_STEP,
    ("offsets to disk", "Broker._keep_offsets"): _IN_STEP,
    ("retention", "StoreCleaner.run"): _IN_STEP,
}
"""Maps maintenance tasks to the order in which they fire after a skip.

A task is identified by the beginning of its name and of its coroutine's name.
"""


class _Maintenance(NamedTuple):
    timer: asyncio.TimerHandle
    place: int
    sampler: RepeatedCall | None


class IdleSkip:
    """The maintenance timers of one event loop, and the time until any other timer is due."""

    def __init__(self, time: VirtualTime, loop: asyncio.AbstractEventLoop) -> None:
        """Reads the loop's timers once."""
        self._time = time
        self._timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
        self._maintenance: list[_Maintenance] = []
        self.next_s: float | None = None
        """The seconds until the first timer that is not maintenance; None without one, 0 if the loop has work to do now."""
        waiting = {id(task._fut_waiter): task for task in asyncio.all_tasks(loop)}  # type: ignore[attr-defined]
        now_s = time.loop_time()
        for timer in self._timers:
            if timer.cancelled():
                continue
            maintenance = _maintenance(timer, waiting)
            left_s = timer.when() - now_s
            if maintenance is not None and left_s <= MAX_INTERVAL_S:
                self._maintenance.append(maintenance)
            elif self.next_s is None or left_s < self.next_s:
                self.next_s = left_s
        if loop._ready or time.is_at_work:  # type: ignore[attr-defined]
            self.next_s = 0.0

    def skip(self, seconds: float) -> None:
        """Skips `seconds`, a multiple of MIN_LEAP_S, without running the event loop."""
        begins_s = self._time.loop_time()
        arrives_s = begins_s + seconds
        self._sample(begins_s, arrives_s)
        self._time.leap(arrives_s - self._time.loop_time())
        arrives_s = self._time.loop_time()
        for timer, place, sampler in self._maintenance:
            if place != _IN_STEP:
                timer._when = arrives_s + place * _STEP_S  # type: ignore[attr-defined]
            else:
                timer._when = max(timer._when + seconds, arrives_s + (0 if sampler else _AFTER_ARRIVAL_S))  # type: ignore[attr-defined]
        heapq.heapify(self._timers)

    def _sample(self, begins_s: float, arrives_s: float) -> None:
        """Takes the samples of the statistics that are due during the skip, except those that would be discarded at its end."""
        left_out_s = max(0.0, arrives_s - begins_s - _LOOKED_BACK_S) // MIN_LEAP_S * MIN_LEAP_S
        due = [
            (timer.when() + left_out_s, number, sampler)
            for number, (timer, _, sampler) in enumerate(self._maintenance)
            if sampler is not None
        ]
        heapq.heapify(due)
        while due and due[0][0] < arrives_s:
            at_s, number, sampler = due[0]
            self._time.leap(max(0.0, at_s - self._time.loop_time()))
            sampler.act()
            heapq.heapreplace(due, (at_s + sampler.seconds, number, sampler))


def _maintenance(timer: asyncio.TimerHandle, waiting: dict[int, asyncio.Task[Any]]) -> _Maintenance | None:
    callback, arguments = timer._callback, timer._args  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, RepeatedCall):
        sampler = owner if owner.name in _SAMPLES else None
        return _Maintenance(timer, _IN_STEP, sampler) if owner.name in _CALLS else None
    if isinstance(owner, IdleWatch | OwnRequests):
        return _Maintenance(timer, _IN_STEP, None)
    if isinstance(owner, asyncio.Timeout):
        task = owner._task  # type: ignore[attr-defined]
    else:
        task = waiting.get(id(arguments[0])) if arguments and isinstance(arguments[0], asyncio.Future) else None
    place = _place(task) if task is not None else None
    return _Maintenance(timer, place, None) if place is not None else None


def _place(task: asyncio.Task[Any]) -> int | None:
    work = getattr(task.get_coro(), "__qualname__", "")
    name = task.get_name()
    for (begins, of), place in _TASKS.items():
        if work == of and name.startswith(begins):
            return place
    return None
