"""Tests which queues a rebalance takes and gives up, and that it changes no queue if the members are unknown."""

from collections.abc import Collection
from random import Random

from rocketmq_broker.client import BrokerUnreachable
from rocketmq_broker.client.rebalance.rebalance import Rebalance
from rocketmq_broker.message import MessageQueue

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(4)]


class Assignment:
    def __init__(self) -> None:
        self.process_queues: dict[MessageQueue, None] = {}
        self.not_yet: set[MessageQueue] = set()

    def of_topic(self, topic: str) -> set[MessageQueue]:
        return {queue for queue in self.process_queues if queue.topic == topic}

    async def take(self, queue: MessageQueue) -> bool:
        if queue in self.not_yet:
            return False
        self.process_queues[queue] = None
        return True

    def give_up(self, queue: MessageQueue) -> None:
        del self.process_queues[queue]


class Group:
    """A client `me` of a group, with the group's members and topics."""

    def __init__(self, *members: str, is_broadcasting: bool = False) -> None:
        self.members: list[str] | None = list(members)
        self.topics: Collection[str] = ["orders"]
        self.assignment = Assignment()
        self.heartbeats_wanted = 0
        self.rebalance = Rebalance(
            "group",
            "me",
            lambda: self.topics,
            self,  # type: ignore[arg-type]
            None if is_broadcasting else self,  # type: ignore[arg-type]
            self.assignment,  # type: ignore[arg-type]
            self.want_heartbeat,
            Random(1),
        )

    def queues_to_subscribe(self, topic: str) -> list[MessageQueue] | None:
        return QUEUES if topic == "orders" else None

    async def consumer_ids(self, group: str, broker_name: str) -> list[str]:
        if self.members is None:
            raise BrokerUnreachable(f"broker {broker_name} is unreachable")
        return self.members

    def want_heartbeat(self) -> None:
        self.heartbeats_wanted += 1

    @property
    def taken(self) -> list[int]:
        return sorted(queue.queue_id for queue in self.assignment.process_queues)


async def test_alone_a_member_takes_every_queue() -> None:
    group = Group("me")
    assert await group.rebalance.rebalance()
    assert group.taken == [0, 1, 2, 3]


async def test_a_member_that_joins_gets_its_share() -> None:
    group = Group("me")
    await group.rebalance.rebalance()
    group.members = ["me", "you"]
    await group.rebalance.rebalance()
    assert group.taken == [0, 1]


async def test_a_broker_that_forgot_this_member_takes_nothing_from_it_but_hears_from_it() -> None:
    group = Group("me")
    await group.rebalance.rebalance()
    group.members = ["you"]
    assert not await group.rebalance.rebalance()
    assert (group.taken, group.heartbeats_wanted) == ([0, 1, 2, 3], 1)


async def test_while_the_broker_is_away_everything_stays() -> None:
    group = Group("me")
    await group.rebalance.rebalance()
    group.members = None
    assert not await group.rebalance.rebalance()
    assert group.taken == [0, 1, 2, 3]


async def test_a_queue_that_cannot_be_had_yet_is_tried_again_soon() -> None:
    group = Group("me")
    group.assignment.not_yet = {QUEUES[2]}
    assert not await group.rebalance.rebalance()
    assert group.taken == [0, 1, 3]
    group.assignment.not_yet = set()
    assert await group.rebalance.rebalance()
    assert group.taken == [0, 1, 2, 3]


async def test_with_broadcasting_everyone_takes_every_queue() -> None:
    group = Group(is_broadcasting=True)
    assert await group.rebalance.rebalance()
    assert group.taken == [0, 1, 2, 3]


async def test_a_topic_that_is_no_longer_subscribed_is_given_up() -> None:
    group = Group("me")
    await group.rebalance.rebalance()
    group.topics = []
    await group.rebalance.rebalance()
    assert group.taken == []


async def test_a_topic_that_does_not_exist_yet_is_waited_for_quietly() -> None:
    group = Group("me")
    group.topics = ["not yet"]
    assert await group.rebalance.rebalance()
    assert group.taken == []
