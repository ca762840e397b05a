"""Samples the brokers' statistics while the console runs, and keeps the samples of the last few minutes."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rocketmq_broker.admin.broker_requests.figures import runtime_info
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.drawing.chart import Chart, Point, chart
from rocketmq_broker.admin.errors import AdminError, NotSupported
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader
from rocketmq_broker.world import World

EVERY_S: Final = 2.0
SPAN_MS: Final = 5 * 60_000
_MAX_SAMPLES: Final = int(SPAN_MS / 1000 / EVERY_S) + 2


@dataclass(frozen=True, slots=True)
class Sample:
    """The sums of all brokers' statistics at one moment; None for an unknown value."""

    at_ms: int
    stored: int | None = None
    """The number of messages ever stored."""
    delivered: int | None = None
    pending: int | None = None
    parked: int | None = None
    """The number of dead letters and discarded messages that no operator has treated yet."""


class Sampler:
    """Samples all brokers every two seconds and keeps the samples of five minutes."""

    def __init__(self, brokers: Brokers, world: World) -> None:
        self._brokers = brokers
        self._world = world
        self._samples: deque[Sample] = deque(maxlen=_MAX_SAMPLES)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the sampling task."""
        self._task = asyncio.create_task(self._run(), name="console-sampler")

    async def stop(self) -> None:
        """Cancels the sampling task and waits until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def charts(self) -> list[Chart]:
        """Returns charts of the samples taken in the last few minutes."""
        return charts_of(list(self._samples))

    async def _run(self) -> None:
        while True:
            self._samples.append(await self._sample())
            await asyncio.sleep(EVERY_S)

    async def _sample(self) -> Sample:
        at_ms = self._world.wall_ms()
        try:
            session = await self._brokers.session()
            return added(at_ms, [await _sample_of(broker, at_ms) for broker in session.brokers])
        except AdminError:
            return Sample(at_ms)


def charts_of(samples: Sequence[Sample]) -> list[Chart]:
    """Returns charts of the message rates and of the numbers of waiting messages."""
    return [
        chart("Messages stored", "a second", _rates(samples, lambda sample: sample.stored), span_ms=SPAN_MS),
        chart("Messages delivered", "a second", _rates(samples, lambda sample: sample.delivered), span_ms=SPAN_MS),
        chart("Pending transactions", "", [(sample.at_ms, sample.pending) for sample in samples], span_ms=SPAN_MS),
        chart("Parked messages", "untreated", [(sample.at_ms, sample.parked) for sample in samples], span_ms=SPAN_MS),
    ]


def added(at_ms: int, samples: Sequence[Sample]) -> Sample:
    """Returns the sum of the samples of several brokers. A value is None if it is unknown for any broker."""
    return Sample(
        at_ms,
        _sum([sample.stored for sample in samples]),
        _sum([sample.delivered for sample in samples]),
        _sum([sample.pending for sample in samples]),
        _sum([sample.parked for sample in samples]),
    )


def _sum(figures: Sequence[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if len(known) == len(figures) else None


def _rates(samples: Sequence[Sample], figure: Callable[[Sample], int | None]) -> list[Point]:
    """Returns the increase of `figure` per second between consecutive samples.

    A rate is None if the figure is unknown or has decreased. It decreases when a broker restarts.
    """
    points: list[Point] = []
    for earlier, later in pairwise(samples):
        before, after = figure(earlier), figure(later)
        is_known = before is not None and after is not None and after >= before and later.at_ms > earlier.at_ms
        rate = (after - before) * 1000 / (later.at_ms - earlier.at_ms) if is_known else None  # type: ignore[operator]
        points.append((later.at_ms, rate))
    return points


async def _sample_of(broker: BrokerRequests, at_ms: int) -> Sample:
    figures = await runtime_info(broker)
    pending, parked = None, None
    try:
        pending = (await broker.list_pending(ListPendingTransactionsRequestHeader(max_count=1))).total
        counts = await broker.count_parked()
        parked = sum(counts.dead_letters.values()) + sum(counts.discarded.values())
    except NotSupported:
        pass  # an Apache broker
    return Sample(
        at_ms, _number(figures.get("msgPutTotalTodayNow")), _number(figures.get("msgGetTotalTodayNow")), pending, parked
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and is_number(text) else None
