"""Counts the broker's throughput, sampled every second (RocketMQ's BrokerStats and StoreStatsService)."""

import time
from collections import deque
from dataclasses import dataclass, field

from rocketmq_broker.server.statistics.message_flows import MessageFlows
from rocketmq_broker.server.statistics.traffic import TrafficCounts

SPANS_S = (10, 60, 600)


@dataclass(slots=True)
class BrokerStatistics:
    """Counters since the broker's start, and their samples from the last ten minutes."""

    start_ms: int
    messages_put: int = 0
    messages_got: int = 0
    pulls_found: int = 0
    pulls_missed: int = 0
    max_pull_ms: int = 0
    """The longest time to find the messages of a pull, in milliseconds."""
    put_at_midnight: int = 0
    got_at_midnight: int = 0
    put_yesterday: int = 0
    got_yesterday: int = 0
    flows: MessageFlows = field(default_factory=MessageFlows)
    """Counts the throughput of each topic and each group."""
    traffic: TrafficCounts = field(default_factory=TrafficCounts)
    """Counts messages of each topic, message type and group, for metrics."""
    _samples: deque[tuple[int, int, int, int, int]] = field(default_factory=lambda: deque(maxlen=SPANS_S[-1] + 1))

    def sample(self, now_ms: int) -> None:
        """Samples the counters, and detects the start of a new day. Call it every second."""
        if self._samples and _day(self._samples[-1][0]) != _day(now_ms):
            self.roll_over_midnight()
        self._samples.append((now_ms, self.messages_put, self.messages_got, self.pulls_found, self.pulls_missed))

    def sample_flows(self, now_ms: int) -> None:
        """Samples the counters of topics and groups. Call it every SAMPLE_INTERVAL_S seconds."""
        self.flows.note_totals(messages_put=self.messages_put, messages_got=self.messages_got)
        self.flows.sample(now_ms)

    def roll_over_midnight(self) -> None:
        """Starts a new day. Today's counts become yesterday's."""
        self.put_yesterday, self.put_at_midnight = self.put_at_midnight, self.messages_put
        self.got_yesterday, self.got_at_midnight = self.got_at_midnight, self.messages_got

    def put_rates(self) -> str:
        """Formats the messages stored per second over 10, 60 and 600 s, as in RocketMQ's runtime information."""
        return self._rates(1)

    def got_rates(self) -> str:
        """Formats the messages pulled per second over 10, 60 and 600 s."""
        return self._rates(2)

    def found_rates(self) -> str:
        """Formats the pulls per second that found messages, over 10, 60 and 600 s."""
        return self._rates(3)

    def missed_rates(self) -> str:
        """Formats the pulls per second that found no messages, over 10, 60 and 600 s."""
        return self._rates(4)

    def pull_rates(self) -> str:
        """Formats the pulls per second over 10, 60 and 600 s."""
        return self._rates(3, 4)

    def _rates(self, *columns: int) -> str:
        return " ".join(repr(sum(self._rate(column, span_s) for column in columns)) for span_s in SPANS_S)

    def _rate(self, column: int, span_s: int) -> float:
        if len(self._samples) < 2:
            return 0.0
        last = self._samples[-1]
        first = self._samples[max(0, len(self._samples) - 1 - span_s)]
        return (last[column] - first[column]) * 1000 / max(1, last[0] - first[0])


def _day(now_ms: int) -> tuple[int, int]:
    local = time.localtime(now_ms / 1000)
    return local.tm_year, local.tm_yday
