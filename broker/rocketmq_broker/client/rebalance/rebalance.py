"""Rebalances the queues of a group every 20 s and at each change of its members (RocketMQ's RebalanceService)."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.rebalance.assignment import Assignment
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.allocation import allocate_averagely
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.world import Chance

logger = logging.getLogger(__name__)

INTERVAL_S = 20.0
RETRY_S = 1.0
RETRY_IN_OUTAGES_S = 10.0


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Takes and releases queues so that this client consumes its share of the subscribed topics' queues.

    `requests` is None for broadcasting, in which case this client takes every queue.

    `on_unknown_here` is called when a broker does not list this client as a member. It must send a heartbeat.
    """

    group: str
    client_id: str
    topics: Callable[[], Collection[str]]
    routes: Routes
    requests: GroupRequests | None
    assignment: Assignment
    on_unknown_here: Callable[[], None]
    random: Chance
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def trigger(self) -> None:
        """Starts the next rebalance at once. Call it after routes or members have changed."""
        self._wake.set()

    async def run(self) -> None:
        """Rebalances until it is cancelled."""
        backoff = Backoff(RETRY_S, RETRY_S, in_outages_s=RETRY_IN_OUTAGES_S)
        while True:
            self._wake.clear()
            if await self.rebalance():
                backoff.succeeded()
                pause_s = INTERVAL_S
            else:
                pause_s = backoff.next_pause_s()
            try:
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def rebalance(self) -> bool:
        """Rebalances once. Returns False if another rebalance is needed soon, because this one was incomplete."""
        wanted = self.topics()
        is_settled, members = True, dict[str, list[str]]()
        for topic in wanted:
            try:
                is_settled = await self._rebalance_topic(topic, members) and is_settled
            except (ClientError, ProtocolError) as error:
                logger.debug("topic %s is not rebalanced: %s", topic, error)
                is_settled = False
        for queue in [queue for queue in self.assignment.process_queues if queue.topic not in wanted]:
            self.assignment.give_up(queue)
        return is_settled

    async def _rebalance_topic(self, topic: str, members: dict[str, list[str]]) -> bool:
        """Rebalances one topic. `members` caches the group's members by broker name."""
        queues = self.routes.queues_to_subscribe(topic)
        if not queues:
            return True  # a change of the route triggers the next rebalance
        share = await self._share(queues, members)
        if share is None:
            self.on_unknown_here()
            return False
        for queue in sorted(self.assignment.of_topic(topic) - share):
            self.assignment.give_up(queue)
        taken = [await self.assignment.take(queue) for queue in sorted(share)]
        return all(taken)

    async def _share(self, queues: list[MessageQueue], members: dict[str, list[str]]) -> set[MessageQueue] | None:
        """Returns this client's share of the queues; None if the broker does not list this client among the members."""
        if self.requests is None:
            return set(queues)
        broker = self.random.choice(queues).broker_name
        if broker not in members:
            members[broker] = await self.requests.consumer_ids(self.group, broker)
        if self.client_id not in members[broker]:
            return None
        return set(allocate_averagely(queues, members[broker], self.client_id))
