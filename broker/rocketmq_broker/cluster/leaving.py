"""Counts the messages that are left on a broker before it leaves the cluster."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from rocketmq_broker.admin.broker_requests.figures import consume_stats, groups_of_topic, runtime_info, system_topics, topic_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.message import topics
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader


@dataclass(frozen=True, slots=True)
class DrainPace:
    """The times of a drain in seconds. A read-only broker may receive messages until clients update their routes (30 s)."""

    poll_interval_s: float = 5.0
    min_read_only_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Remainder:
    """The numbers of messages that would be unreachable if the broker left the cluster."""

    pending: int = 0
    """The number of transactions without a decision."""
    delayed: int = 0
    unconsumed: tuple[tuple[str, str, int], ...] = ()
    """Tuples of topic, consumer group, and number of unconsumed messages.

    The group is empty if no group has consumed the topic.
    """
    parked: int = 0
    """The number of dead letters and discarded messages that no operator has handled."""

    @property
    def is_empty(self) -> bool:
        """True if all numbers are 0, so that the broker can leave the cluster."""
        return not (self.pending or self.delayed or self.unconsumed or self.parked)

    def text(self) -> str:
        """Returns the counts as text, for example `2 pending transactions, 5 delayed messages`."""
        parts = [f"{self.pending} pending transactions"] if self.pending else []
        if self.delayed:
            parts.append(f"{self.delayed} delayed messages")
        for topic, group, count in self.unconsumed:
            parts.append(f"{count} of {topic} for {group}" if group else f"{count} of {topic}, which no group consumes")
        if self.parked:
            parts.append(f"{self.parked} untreated dead letters or discarded messages (rocketmq-admin doctor)")
        return ", ".join(parts) or "nothing"


async def remainder_of(address: str) -> Remainder:
    """Returns the numbers of messages that are left on the broker at `address`.

    Raises AdminError if the broker does not respond.
    """
    async with opened_session(Target(broker_addr=address)) as session:
        (broker,) = session.brokers
        pending = await broker.list_pending(ListPendingTransactionsRequestHeader(max_count=1))
        parked = await broker.count_parked()
        return Remainder(
            pending=pending.total,
            delayed=_delayed(await runtime_info(broker)),
            unconsumed=tuple([entry async for entry in _unconsumed(broker)]),
            parked=sum(parked.dead_letters.values()) + sum(parked.discarded.values()),
        )


def _delayed(figures: dict[str, str]) -> int:
    """Returns the number of delayed messages, according to the broker's runtime information.

    The value of each delay level contains the consume offset and the end of the level's queue.
    """
    levels = [text.split(",") for name, text in figures.items() if name.startswith("scheduleMessageOffset_")]
    return sum(max(0, int(end) - int(offset)) for offset, end in levels)


async def _unconsumed(broker: BrokerRequests) -> AsyncIterator[tuple[str, str, int]]:
    of_the_broker = await system_topics(broker)
    for topic in sorted(await broker.topics()):
        if topic in of_the_broker or topics.is_system_topic(topic) or topic.startswith(topics.DEAD_LETTER_PREFIX):
            continue
        stats = await topic_stats(broker, topic)
        stored = sum(queue.max_offset - queue.min_offset for queue in stats.offset_table.values()) if stats is not None else 0
        if stats is None or not stored:
            continue
        groups = await groups_of_topic(broker, topic)
        if not groups:
            yield topic, "", stored
        for group in groups:
            consumed = (await consume_stats(broker, group, topic)).offset_table
            lag = 0
            for queue, offsets in stats.offset_table.items():
                reached = consumed[queue].consumer_offset if queue in consumed else 0
                lag += max(0, offsets.max_offset - max(reached, offsets.min_offset))
            if lag:
                yield topic, group, lag
