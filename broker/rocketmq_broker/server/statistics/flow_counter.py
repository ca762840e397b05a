"""Counts one statistic of RocketMQ over the last minute, hour and day (StatsItem)."""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

SAMPLE_INTERVAL_S: Final = 10


class Measure(IntEnum):
    """The unit of a flow: messages or bytes. The value is the index within a sample."""

    MESSAGES = 1
    SIZE = 2


@dataclass(frozen=True, slots=True)
class Flow:
    """The number of messages or bytes in a span of time, and the average rates."""

    amount: int = 0
    per_second: float = 0.0
    per_call: float = 0.0


@dataclass(frozen=True, slots=True)
class FlowReport:
    """The flows of the last minute, hour and day. Hour and day are empty until their first samples."""

    minute: Flow
    hour: Flow
    day: Flow


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time, and the interval of its samples.

    `ticks` is the time between two samples, in units of SAMPLE_INTERVAL_S. `kept` is the number of samples that are kept.
    """

    ticks: int
    kept: int

    @property
    def interval_ms(self) -> int:
        """Returns the time between two samples, in milliseconds."""
        return self.ticks * SAMPLE_INTERVAL_S * 1000


MINUTE: Final = Span(ticks=1, kept=7)
HOUR: Final = Span(ticks=60, kept=7)
DAY: Final = Span(ticks=360, kept=25)
SPANS: Final = (MINUTE, HOUR, DAY)


class _Sample(NamedTuple):
    at_ms: int
    messages: int = 0
    size: int = 0
    calls: int = 0


@dataclass(slots=True)
class FlowCounter:
    """Counts messages and bytes in counters that never decrease. `calls` is the number of additions to the counters."""

    messages: int = 0
    size: int = 0
    calls: int = 0
    _samples: dict[Span, deque[_Sample]] = field(
        default_factory=lambda: {span: deque(maxlen=span.kept) for span in SPANS}, repr=False
    )

    def sample(self, span: Span, now_ms: int) -> None:
        """Samples the counters for a span of time. `now_ms` is the time of the sample."""
        samples = self._samples[span]
        if not samples:
            samples.append(_Sample(now_ms - span.interval_ms))
        samples.append(_Sample(now_ms, self.messages, self.size, self.calls))

    def flow(self, span: Span, measure: Measure) -> Flow:
        """Returns the number of messages or bytes within the span, and their rates."""
        samples = self._samples[span]
        if not samples:
            return Flow()
        first, last = samples[0], samples[-1]
        passed, calls = last[measure] - first[measure], last.calls - first.calls
        return Flow(passed, passed * 1000 / max(1, last.at_ms - first.at_ms), passed / calls if calls else 0.0)

    def report(self, measure: Measure) -> FlowReport:
        """Returns the flows of the last minute, hour and day."""
        return FlowReport(self.flow(MINUTE, measure), self.flow(HOUR, measure), self.flow(DAY, measure))
