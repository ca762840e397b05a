"""The consumption rates of a consumer for each topic (RocketMQ's ConsumerStatsManager)."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.bodies.running_info import ConsumeSpeed

_SPAN_S: Final = 10
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600


@dataclass(slots=True)
class _Span:
    """The counts of one topic in an interval of 10 s."""

    number: int
    pulls: int = 0
    pulls_took_s: float = 0.0
    pulled: int = 0
    calls: int = 0
    calls_took_s: float = 0.0
    consumed: int = 0
    failed: int = 0


class ConsumerStatistics:
    """Counts a consumer's pulls and messages of the last hour. Not thread-safe: use it on the event loop only."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """Creates empty statistics. `now_s` is a monotonic clock in seconds."""
        self._now_s = now_s
        self._spans: dict[str, deque[_Span]] = {}

    def pulled(self, topic: str, messages: int, took_s: float) -> None:
        """Counts a pull and its messages."""
        span = self._span(topic)
        span.pulls += 1
        span.pulls_took_s += took_s
        span.pulled += messages

    def consumed(self, topic: str, consumed: int, failed: int, took_s: float) -> None:
        """Counts a listener's call and its messages."""
        span = self._span(topic)
        span.calls += 1
        span.calls_took_s += took_s
        span.consumed += consumed
        span.failed += failed

    def speed(self, topic: str) -> ConsumeSpeed:
        """Returns the last minute's rates and averages, and the number of failed messages in the last hour."""
        hour = self._latest(topic, _HOUR_S)
        minute = self._latest(topic, _MINUTE_S)
        calls = minute if any(span.calls for span in minute) else hour
        return ConsumeSpeed(
            pull_rt=_average_ms((span.pulls_took_s for span in minute), (span.pulls for span in minute)),
            pull_tps=sum(span.pulled for span in minute) / _MINUTE_S,
            consume_rt=_average_ms((span.calls_took_s for span in calls), (span.calls for span in calls)),
            consume_ok_tps=sum(span.consumed for span in minute) / _MINUTE_S,
            consume_failed_tps=sum(span.failed for span in minute) / _MINUTE_S,
            consume_failed_msgs=sum(span.failed for span in hour),
        )

    def _span(self, topic: str) -> _Span:
        number = int(self._now_s()) // _SPAN_S
        spans = self._spans.get(topic)
        if spans is None:
            spans = self._spans[topic] = deque(maxlen=_HOUR_S // _SPAN_S)
        if not spans or spans[-1].number != number:
            spans.append(_Span(number))
        return spans[-1]

    def _latest(self, topic: str, seconds: int) -> list[_Span]:
        oldest = int(self._now_s()) // _SPAN_S - seconds // _SPAN_S
        return [span for span in self._spans.get(topic, ()) if span.number > oldest]


def _average_ms(took_s: Iterable[float], counts: Iterable[int]) -> float:
    count = sum(counts)
    return sum(took_s) * 1000 / count if count else 0.0
