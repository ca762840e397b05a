"""`topics` and `groups`. Apache's brokers can be asked as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.options import AsJson, BrokerAddr, NameServers, target_of
from rocketmq_broker.admin.progress.groups import SAME_SUBSCRIPTIONS, GroupFigures, QueueLag, groups_of, progress_of
from rocketmq_broker.admin.progress.topics import TopicFigures, topics_of
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.telling.printing import print_listing, print_table, say, time_text

EveryTopic = Annotated[bool, typer.Option("--all", help="Also the broker's own topics, retry topics and dead letters.")]
EveryGroup = Annotated[bool, typer.Option("--all", help="Also groups that consume nothing, and the broker's own.")]
OneGroup = Annotated[str | None, typer.Option("-g", "--group", help="One consumer group, queue by queue.")]


def topics(
    context: typer.Context,
    every_one: EveryTopic = False,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Topics, with their queues and the messages that these hold."""

    async def work(session: Session) -> None:
        answers = await session.ask_each(lambda broker: topics_of(broker, every_one=every_one))
        rows = [(broker.address, one) for broker, found in answers for one in found]
        print_listing(rows, print_topics, as_json=as_json, nothing="no topics")

    run(target_of(context, namesrv_addr, broker_addr), work)


def groups(
    context: typer.Context,
    group: OneGroup = None,
    every_one: EveryGroup = False,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Consumer groups, with their lag: how many messages they have not got yet; in hand are those popped, not acknowledged."""

    async def all_groups(session: Session) -> None:
        answers = await session.ask_each(lambda broker: groups_of(broker, every_one=every_one))
        rows = [(broker.address, one) for broker, found in answers for one in found]
        print_listing(rows, print_groups, as_json=as_json, nothing="no consumer groups")

    async def one_group(session: Session) -> None:
        assert group is not None
        answers = await session.ask_each(lambda broker: progress_of(broker, group))
        rows = [(broker.address, one) for broker, found in answers for one in found]
        if not rows:
            raise Refused(f"the consumer group {group} has no offsets: there is no such group, or it has consumed nothing yet")
        print_listing(rows, print_progress, as_json=as_json, nothing="")

    run(target_of(context, namesrv_addr, broker_addr), all_groups if group is None else one_group)


def print_topics(rows: Sequence[tuple[str, TopicFigures]]) -> None:
    """Prints topics, one a line."""
    print_table(
        ("topic", "queues", "messages", "newest"),
        [(address, (one.topic, str(one.queues), str(one.messages), time_text(one.newest_ms))) for address, one in rows],
    )


def print_groups(rows: Sequence[tuple[str, GroupFigures]]) -> None:
    """Prints consumer groups, one a line."""
    print_table(
        ("consumer group", "online", "lag", "in hand", "consumed up to", "topics"),
        [(address, _group_cells(one)) for address, one in rows],
    )
    for one in dict.fromkeys(one.disagreement for _, one in rows if one.disagreement is not None):
        say(f"WRONG  {one}. {SAME_SUBSCRIPTIONS}")


def _group_cells(one: GroupFigures) -> tuple[str, ...]:
    counts = str(one.online), str(one.lag), str(one.in_hand)
    return one.group, *counts, time_text(one.consumed_ms), " ".join(one.topics)


def print_progress(rows: Sequence[tuple[str, QueueLag]]) -> None:
    """Prints the queues of a group, one a line."""
    print_table(
        ("topic", "queue", "offset", "end", "lag", "consumed up to", "in hand", "oldest of", "next visible", "attempts"),
        [(address, _cells(one)) for address, one in rows],
    )


def _cells(one: QueueLag) -> tuple[str, ...]:
    place = one.topic, str(one.queue_id), str(one.consumer_offset)
    popped = str(one.in_hand), time_text(one.oldest_ms), time_text(one.next_visible_ms), str(one.attempts)
    return *place, str(one.end_offset), str(one.lag), time_text(one.consumed_ms), *popped
