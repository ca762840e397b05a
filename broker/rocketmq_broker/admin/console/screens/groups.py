"""Screens that show the consumer groups with their lag, and the queues and members of a group."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.figures import consumers
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.progress.groups import GroupFigures, QueueLag, groups_of, progress_of
from rocketmq_broker.message import topics
from rocketmq_broker.protocol.bodies.group import ClientConnection


class GroupFacts(NamedTuple):
    """A consumer group with its progress and its members."""

    group: str
    queues: list[tuple[str, QueueLag]]
    members: list[tuple[str, ClientConnection]]
    disagreements: list[str]

    @property
    def can_be_reset(self) -> bool:
        """True if an operator may reset the group's offsets. False for a system group."""
        return not topics.is_system_group(self.group)


async def find_groups(visit: Visit) -> list[tuple[str, GroupFigures]]:
    """Returns the consumer groups of each broker. Raises CannotAsk or Refused."""
    return await (await visit.session()).rows(lambda broker: groups_of(broker, every_one=False))


async def find_group(visit: Visit) -> GroupFacts:
    """Returns a group's progress and members. Raises CannotAsk, or Refused if no broker has the group."""
    group, session = visit.word("group"), await visit.session()
    queues = await session.rows(lambda broker: progress_of(broker, group))
    members = await session.ask_each(lambda broker: consumers(broker, group))
    facts = GroupFacts(
        group,
        queues,
        [(broker.address, one) for broker, found in members for one in found.connection_set],
        [found.disagreement for _, found in members if found.disagreement is not None],
    )
    if not facts.queues and not facts.members:
        raise Refused(
            f"the consumer group {group} has no offsets and no members: it does not exist or has not consumed any message yet"
        )
    return facts


SCREENS: Final = (
    Screen("/groups", "Consumer groups", "groups.html", find_groups, refresh_s=2.0),
    Screen("/group", "Consumer group", "group.html", find_group, heading=lambda visit: f"Consumer group {visit.word('group')}"),
)
