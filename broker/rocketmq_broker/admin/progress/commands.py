"""The commands `topics` and `groups`. They work with Apache's brokers, too."""

from collections.abc import Sequence
from typing import Annotated

import typer

from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.options import AsJson, with_session
from rocketmq_broker.admin.output.printing import echo, print_listing, print_table
from rocketmq_broker.admin.output.times import time_text
from rocketmq_broker.admin.progress.groups import SAME_SUBSCRIPTIONS, GroupFigures, QueueLag, groups_of, progress_of
from rocketmq_broker.admin.progress.topics import TopicFigures, topics_of
from rocketmq_broker.admin.session import Session

EveryTopic = Annotated[bool, typer.Option("--all", help="Include system topics, retry topics and dead-letter topics.")]
EveryGroup = Annotated[bool, typer.Option("--all", help="Include system groups and groups that consume nothing.")]
OneGroup = Annotated[str | None, typer.Option("-g", "--group", help="Show each queue of one consumer group.")]


@with_session
async def topics(session: Session, every_one: EveryTopic = False, as_json: AsJson = False) -> None:
    """List topics with their numbers of queues and messages."""
    rows = await session.rows(lambda broker: topics_of(broker, every_one=every_one))
    print_listing(rows, print_topics, as_json=as_json, nothing="no topics")


@with_session
async def groups(session: Session, group: OneGroup = None, every_one: EveryGroup = False, as_json: AsJson = False) -> None:
    """List consumer groups with their lag (messages not delivered yet) and messages in hand (popped, not acknowledged)."""
    if group is not None:
        await _print_group(session, group, as_json=as_json)
        return
    rows = await session.rows(lambda broker: groups_of(broker, every_one=every_one))
    print_listing(rows, print_groups, as_json=as_json, nothing="no consumer groups")


async def _print_group(session: Session, group: str, *, as_json: bool) -> None:
    rows = await session.rows(lambda broker: progress_of(broker, group))
    if not rows:
        raise Refused(f"the consumer group {group} has no offsets: it does not exist or has not consumed any message yet")
    print_listing(rows, print_progress, as_json=as_json, nothing="")


def print_topics(rows: Sequence[tuple[str, TopicFigures]]) -> None:
    """Prints topics, one per line."""
    print_table(
        ("topic", "queues", "messages", "newest"),
        [(address, (one.topic, str(one.queues), str(one.messages), time_text(one.newest_ms))) for address, one in rows],
    )


def print_groups(rows: Sequence[tuple[str, GroupFigures]]) -> None:
    """Prints consumer groups, one per line."""
    print_table(
        ("consumer group", "online", "lag", "in hand", "consumed up to", "topics"),
        [(address, _group_cells(one)) for address, one in rows],
    )
    for one in dict.fromkeys(one.disagreement for _, one in rows if one.disagreement is not None):
        echo(f"WRONG  {one}. {SAME_SUBSCRIPTIONS}")


def _group_cells(one: GroupFigures) -> tuple[str, ...]:
    counts = str(one.online), str(one.lag), str(one.in_hand)
    return one.group, *counts, time_text(one.consumed_ms), " ".join(one.topics)


def print_progress(rows: Sequence[tuple[str, QueueLag]]) -> None:
    """Prints the queues of a group, one per line."""
    print_table(
        ("topic", "queue", "offset", "end", "lag", "consumed up to", "in hand", "oldest of", "next visible", "attempts"),
        [(address, _cells(one)) for address, one in rows],
    )


def _cells(one: QueueLag) -> tuple[str, ...]:
    place = one.topic, str(one.queue_id), str(one.consumer_offset)
    popped = str(one.in_hand), time_text(one.oldest_ms), time_text(one.next_visible_ms), str(one.attempts)
    return *place, str(one.end_offset), str(one.lag), time_text(one.consumed_ms), *popped
