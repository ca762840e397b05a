"""Prints topics and groups."""

from __future__ import annotations

from collections.abc import Sequence

from rocketmq_broker.admin.progress.groups import GroupFigures, QueueLag
from rocketmq_broker.admin.progress.topics import TopicFigures
from rocketmq_broker.admin.telling.printing import print_table, time_text


def print_topics(rows: Sequence[tuple[str, TopicFigures]]) -> None:
    """Prints topics, one a line."""
    print_table(
        ("topic", "queues", "messages", "newest"),
        [(address, (one.topic, str(one.queues), str(one.messages), time_text(one.newest_ms))) for address, one in rows],
    )


def print_groups(rows: Sequence[tuple[str, GroupFigures]]) -> None:
    """Prints consumer groups, one a line."""
    print_table(
        ("consumer group", "online", "lag", "consumed up to", "topics"),
        [
            (address, (one.group, str(one.online), str(one.lag), time_text(one.consumed_ms), " ".join(one.topics)))
            for address, one in rows
        ],
    )


def print_progress(rows: Sequence[tuple[str, QueueLag]]) -> None:
    """Prints the queues of a group, one a line."""
    print_table(
        ("topic", "queue", "offset", "end", "lag", "consumed up to"),
        [(address, _cells(one)) for address, one in rows],
    )


def _cells(one: QueueLag) -> tuple[str, ...]:
    place = one.topic, str(one.queue_id), str(one.consumer_offset)
    return *place, str(one.end_offset), str(one.lag), time_text(one.consumed_ms)
