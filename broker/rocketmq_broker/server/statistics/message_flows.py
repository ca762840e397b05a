"""Counts the throughput of the broker, of topics and of groups, under RocketMQ's names (BrokerStatsManager)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from rocketmq_broker.server.statistics.flow_counter import MINUTE, SPANS, FlowCounter, FlowReport, Measure

TOPIC_PUT_NUMS: Final = "TOPIC_PUT_NUMS"
"""The number of messages that became visible in a topic. The key is the topic."""
TOPIC_PUT_SIZE: Final = "TOPIC_PUT_SIZE"
"""The size in the commit log, in bytes, of the messages that became visible in a topic. The key is the topic."""
GROUP_GET_NUMS: Final = "GROUP_GET_NUMS"
"""The number of messages that a group pulled from a topic. The key is TOPIC@GROUP."""
GROUP_GET_SIZE: Final = "GROUP_GET_SIZE"
"""The size, in bytes, of the messages that a group pulled from a topic. The key is TOPIC@GROUP."""
SNDBCK_PUT_NUMS: Final = "SNDBCK_PUT_NUMS"
"""The number of messages of a topic that a group sent back after failures. The key is TOPIC@GROUP."""
BROKER_PUT_NUMS: Final = "BROKER_PUT_NUMS"
"""The number of messages sent by producers. The key is the cluster."""
BROKER_GET_NUMS: Final = "BROKER_GET_NUMS"
"""The number of messages pulled by consumers. The key is the cluster."""

_MEASURES: Final = {TOPIC_PUT_SIZE: Measure.SIZE, GROUP_GET_SIZE: Measure.SIZE}


class MessageFlows:
    """Counts and samples throughput. A statistic exists only if its counter is greater than zero."""

    def __init__(self, cluster: str = "") -> None:
        self._cluster = cluster
        self._put: defaultdict[bytes, FlowCounter] = defaultdict(FlowCounter)
        self._got: defaultdict[tuple[bytes, str], FlowCounter] = defaultdict(FlowCounter)
        self._sent_back: defaultdict[tuple[bytes, str], FlowCounter] = defaultdict(FlowCounter)
        self._broker_put = FlowCounter()
        self._broker_got = FlowCounter()
        self._queue_ends: dict[tuple[bytes, int], int] = {}
        self._ticks = 0

    def begin_at(self, queue_ends: Iterable[tuple[bytes, int, int]]) -> None:
        """Sets the ends of the queues at startup (topic, queue id, max offset). Earlier messages are not counted."""
        self._queue_ends = {(topic, queue_id): max_offset for topic, queue_id, max_offset in queue_ends}

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int, size: int) -> None:
        """Counts the new messages of a queue. `size` is the size of their records in bytes."""
        before = self._queue_ends.get((topic, queue_id), 0)
        self._queue_ends[topic, queue_id] = max_offset
        messages = max_offset - before if max_offset >= before else max_offset
        counter = self._put[topic]
        counter.messages += messages
        counter.size += size
        counter.calls += messages

    def got(self, topic: bytes, group: str, messages: int, size: int) -> None:
        """Counts messages that a group pulled."""
        counter = self._got[topic, group]
        counter.messages += messages
        counter.size += size
        counter.calls += 1

    def sent_back(self, topic: bytes, group: str) -> None:
        """Counts a message of the topic that a group sent back."""
        counter = self._sent_back[topic, group]
        counter.messages += 1
        counter.calls += 1

    def note_totals(self, *, messages_put: int, messages_got: int) -> None:
        """Sets the total numbers of messages sent and pulled since the start."""
        self._broker_put.messages = messages_put
        self._broker_got.messages = messages_got

    def sample(self, now_ms: int) -> None:
        """Samples all counters. Call it every SAMPLE_INTERVAL_S seconds. The first call must be one interval after the start."""
        counters = (*self._put.values(), *self._got.values(), *self._sent_back.values(), self._broker_put, self._broker_got)
        self._ticks += 1
        for span in SPANS:
            if self._ticks % span.ticks == 0:
                for counter in counters:
                    counter.sample(span, now_ms)

    def arrived(self) -> dict[bytes, int]:
        """Returns the number of messages that became visible in each topic since the start."""
        return {topic: counter.messages for topic, counter in list(self._put.items())}

    def report(self, name: str, key: str) -> FlowReport | None:
        """Returns the statistic with this name and key, or None if nothing was counted."""
        counter = self._counter(name, key)
        return counter.report(_MEASURES.get(name, Measure.MESSAGES)) if counter is not None and counter.messages else None

    def pulled_per_second(self, topic: str, group: str) -> float:
        """Returns the messages per second that a group pulled from a topic in the last minute."""
        counter = self._got.get((topic.encode(), group))
        return counter.flow(MINUTE, Measure.MESSAGES).per_second if counter else 0.0

    def _counter(self, name: str, key: str) -> FlowCounter | None:
        if name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE):
            return self._put.get(key.encode())
        if name in (BROKER_PUT_NUMS, BROKER_GET_NUMS):
            counter = self._broker_put if name == BROKER_PUT_NUMS else self._broker_got
            return counter if key == self._cluster else None
        topic, _, group = key.partition("@")
        if name in (GROUP_GET_NUMS, GROUP_GET_SIZE):
            return self._got.get((topic.encode(), group))
        return self._sent_back.get((topic.encode(), group)) if name == SNDBCK_PUT_NUMS else None
