"""How many messages passed in the last minute, hour and day, by topic and by group (RocketMQ's StatsItem and StatsItemSet)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

SAMPLE_INTERVAL_S: Final = 10
TOPIC_PUT_NUMS: Final = "TOPIC_PUT_NUMS"
"""Messages that became visible in a topic; the key is the topic."""
GROUP_GET_NUMS: Final = "GROUP_GET_NUMS"
"""Messages that a group pulled from a topic; the key is TOPIC@GROUP."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages over a span of time."""

    messages: int = 0
    messages_per_second: float = 0.0
    messages_per_call: float = 0.0


@dataclass(frozen=True, slots=True)
class FlowReport:
    """The last minute, the last hour and the last day; the latter two are empty until they were sampled."""

    minute: Flow
    hour: Flow
    day: Flow


@dataclass(frozen=True, slots=True)
class _Span:
    ticks: int
    kept: int

    @property
    def interval_ms(self) -> int:
        return self.ticks * SAMPLE_INTERVAL_S * 1000


_MINUTE = _Span(ticks=1, kept=7)
_HOUR = _Span(ticks=60, kept=7)
_DAY = _Span(ticks=360, kept=25)


@dataclass(slots=True)
class _Counter:
    messages: int = 0
    calls: int = 0
    samples: dict[_Span, deque[tuple[int, int, int]]] = field(
        default_factory=lambda: {span: deque(maxlen=span.kept) for span in (_MINUTE, _HOUR, _DAY)}
    )

    def sample(self, span: _Span, now_ms: int) -> None:
        samples = self.samples[span]
        if not samples:
            samples.append((now_ms - span.interval_ms, 0, 0))
        samples.append((now_ms, self.messages, self.calls))

    def flow(self, span: _Span) -> Flow:
        samples = self.samples[span]
        if not samples:
            return Flow()
        (from_ms, messages_before, calls_before), (to_ms, messages, calls) = samples[0], samples[-1]
        passed, passed_calls = messages - messages_before, calls - calls_before
        return Flow(passed, passed * 1000 / max(1, to_ms - from_ms), passed / passed_calls if passed_calls else 0.0)


class MessageFlows:
    """Counts, and samples them; a figure exists once there was something to count."""

    def __init__(self) -> None:
        self._put: dict[bytes, _Counter] = {}
        self._got: dict[tuple[bytes, str], _Counter] = {}
        self._queue_ends: dict[tuple[bytes, int], int] = {}
        self._ticks = 0

    def begin_at(self, queue_ends: Iterable[tuple[bytes, int, int]]) -> None:
        """Topics, queue ids and max offsets of what there is already, so that only what comes after it counts."""
        self._queue_ends = {(topic, queue_id): max_offset for topic, queue_id, max_offset in queue_ends}

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """A queue reaches further now."""
        before = self._queue_ends.get((topic, queue_id), 0)
        self._queue_ends[topic, queue_id] = max_offset
        counter = self._put.get(topic)
        if counter is None:
            counter = self._put[topic] = _Counter()
        counter.messages += max_offset - before if max_offset >= before else max_offset
        counter.calls += 1

    def got(self, topic: bytes, group: str, messages: int) -> None:
        """A group pulled messages."""
        counter = self._got.get((topic, group))
        if counter is None:
            counter = self._got[topic, group] = _Counter()
        counter.messages += messages
        counter.calls += 1

    def sample(self, now_ms: int) -> None:
        """Notes all counters; call it every SAMPLE_INTERVAL_S."""
        for span in (_MINUTE, _HOUR, _DAY):
            if self._ticks % span.ticks == 0:
                for counter in (*self._put.values(), *self._got.values()):
                    counter.sample(span, now_ms)
        self._ticks += 1

    def arrived(self) -> dict[bytes, int]:
        """How many messages became visible in each topic since the start."""
        return {topic: counter.messages for topic, counter in list(self._put.items())}

    def report(self, name: str, key: str) -> FlowReport | None:
        """The figures of that name and key, or None where nothing was counted."""
        if name == TOPIC_PUT_NUMS:
            return _report(self._put.get(key.encode()))
        if name == GROUP_GET_NUMS:
            topic, _, group = key.partition("@")
            return _report(self._got.get((topic.encode(), group)))
        return None

    def pulled_per_second(self, topic: str, group: str) -> float:
        """How fast a group pulled from a topic in the last minute."""
        counter = self._got.get((topic.encode(), group))
        return counter.flow(_MINUTE).messages_per_second if counter else 0.0


def _report(counter: _Counter | None) -> FlowReport | None:
    if counter is None:
        return None
    return FlowReport(counter.flow(_MINUTE), counter.flow(_HOUR), counter.flow(_DAY))
