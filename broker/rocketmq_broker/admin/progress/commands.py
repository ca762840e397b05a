"""`topics` and `groups`. Apache's brokers can be asked as well."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.options import AsJson, BrokerAddr, NameServers, target_of
from rocketmq_broker.admin.progress.groups import groups_of, progress_of
from rocketmq_broker.admin.progress.printing import print_groups, print_progress, print_topics
from rocketmq_broker.admin.progress.topics import topics_of
from rocketmq_broker.admin.session import Session, run
from rocketmq_broker.admin.telling.printing import print_listing

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
    """Consumer groups, with their lag: how many messages they have not consumed yet."""

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
