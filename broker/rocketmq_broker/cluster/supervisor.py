"""The supervisor: starts name server and brokers, keeps them running, takes brokers away once they are drained, and stops all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.cluster.child import Child
from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import (
    locked,
    look_into,
    mark_taken_away,
    unmark,
    write_broker_conf,
    write_namesrv_conf,
)
from rocketmq_broker.cluster.known_topics import give_topics
from rocketmq_broker.cluster.leaving import DrainPace, remainder_of
from rocketmq_broker.cluster.plan import ClusterPlan, PlannedBroker, plan_cluster
from rocketmq_broker.cluster.spreading import LOOK_EVERY_S, Spreading, topics_in
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message import topics
from rocketmq_broker.store.errors import StoreError
from rocketmq_broker.world import World


@dataclass(frozen=True, slots=True)
class Supervision:
    """The arguments of `supervise`."""

    settings: BrokerSettings
    """Those of the first broker; storePathRootDir is the cluster's folder."""
    brokers: int
    say: Callable[[str, str], None]
    """Gets each line: the process that it comes from, or `cluster`, and the text."""
    world: World
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set it to stop everything."""
    pace: DrainPace = field(default_factory=DrainPace)


async def supervise(asked: Supervision) -> bool:
    """Runs the cluster until `asked.stopping`. Returns False if no broker is left that could run. Raises ClusterMistake."""
    with locked(asked.settings.store_root):
        plan = plan_cluster(asked.settings, asked.brokers, look_into(asked.settings.store_root))
        spreading = _prepare(plan, asked)
        return await _Running(plan, asked, spreading).run()


def _prepare(plan: ClusterPlan, asked: Supervision) -> Spreading:
    """Brings the folder to the plan, and says what changes. Returns who spreads new topics. Raises ClusterMistake."""
    names = [broker.name for broker in plan.brokers]
    members = [broker.settings.store_root for broker in plan.brokers if not broker.is_new]
    cluster = asked.settings.broker_cluster_name
    not_these = frozenset([*names, cluster, topics.reply_topic(cluster)])
    try:
        for broker in plan.brokers:
            if broker.is_new and members:
                count = give_topics(broker.settings.store_root, members, not_these=not_these, now_ms=asked.world.wall_ms())
                asked.say("cluster", f"{broker.name} is added: it begins with the others' topics ({count}), and without messages")
            if broker.is_back:
                asked.say("cluster", f"{broker.name} takes part again, with the store that it had")
            if not broker.is_leaving:
                unmark(plan.folder, broker.name)
        spreading = Spreading(topics_in(members), not_these)
    except (StoreError, OSError) as error:
        raise ClusterMistake(f"{plan.folder} cannot be used: {error}") from None
    _tell_of_absent(plan, asked)
    return spreading


def _tell_of_absent(plan: ClusterPlan, asked: Supervision) -> None:
    """Says who is taken away, and who leaves now."""
    for name in plan.resting:
        asked.say("cluster", f"{name} stays taken away; its store is kept in {plan.folder / name}")
    for broker in plan.brokers:
        if broker.is_leaving:
            asked.say(
                "cluster",
                f"{broker.name} is taken away: clients send to it no longer, and it stops when it is drained. "
                f"To keep it, start the cluster with --brokers {broker.number}",
            )


class _Running:
    def __init__(self, plan: ClusterPlan, asked: Supervision, spreading: Spreading) -> None:
        self._plan = plan
        self._spreading = spreading
        self._asked = asked
        self._name_server = self._child("namesrv", "rocketmq_broker.nameserver") if plan.has_name_server else None
        self._brokers = {broker.name: self._child(broker.name, "rocketmq_broker", broker) for broker in plan.brokers}

    def _child(self, name: str, module: str, broker: PlannedBroker | None = None) -> Child:
        if broker is None:
            conf = write_namesrv_conf(self._plan, self._asked.settings)
        else:
            conf = write_broker_conf(self._plan.folder, broker.settings)
        return Child(name, [sys.executable, "-m", module, "-c", str(conf)], self._asked.say, self._asked.world)

    async def run(self) -> bool:
        tasks: list[asyncio.Task[None]] = []
        try:
            if self._name_server is not None:
                tasks.append(asyncio.create_task(self._name_server.run(), name="namesrv"))
                await self._name_server_ready(self._name_server)
            brokers = [asyncio.create_task(child.run(), name=child.name) for child in self._brokers.values()]
            leaving = [broker for broker in self._plan.brokers if broker.is_leaving]
            tasks += [*brokers, *(asyncio.create_task(self._drain(broker), name=f"drains {broker.name}") for broker in leaving)]
            tasks.append(asyncio.create_task(self._tell_when_all_are_ready(), name="tells of the start"))
            tasks.append(asyncio.create_task(self._spread_topics(), name="spreads new topics"))
            return await self._watch(brokers)
        finally:
            await self._stop(tasks)

    async def _name_server_ready(self, child: Child) -> None:
        await self._first(child.ready, child.died, self._asked.stopping)
        if child.died.is_set() and not child.ready.is_set():
            raise ClusterMistake(f"the name server cannot start on {self._plan.namesrv_addr}: its line above says why")

    async def _tell_when_all_are_ready(self) -> None:
        for child in self._brokers.values():
            await child.ready.wait()
        addresses = ", ".join(f"{child.name} {child.address}" for child in self._brokers.values())
        cluster = self._asked.settings.broker_cluster_name
        self._asked.say(
            "cluster",
            f"The cluster[{cluster}, {addresses}] boot success. "
            f"name server is {self._plan.namesrv_addr}, folder {self._plan.folder}",
        )

    async def _spread_topics(self) -> None:
        """Looks for new topics whenever all brokers that stay are ready."""
        staying = [self._brokers[broker.name] for broker in self._plan.brokers if not broker.is_leaving]
        name_server, told = self._plan.namesrv_addr.split(";")[0], ""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            addresses = [child.address for child in staying if child.address is not None]
            if len(addresses) < len(staying):
                continue
            try:
                new = await self._spreading.look(name_server, addresses)
            except AdminError as error:
                if str(error) != told:
                    told = str(error)
                    self._asked.say("cluster", f"new topics stay on the broker that made them: {told}")
                continue
            told = ""
            if new and len(staying) > 1:
                self._asked.say("cluster", f"new topics, now on all brokers: {', '.join(new)}")

    async def _watch(self, brokers: Collection[asyncio.Task[None]]) -> bool:
        """Waits until the cluster is told to stop, or none of its brokers is left. Returns False in the second case."""
        stopping = asyncio.create_task(self._told_to_stop(), name="told to stop")
        ended = asyncio.create_task(_ends_of(brokers), name="ends of brokers")
        await asyncio.wait([stopping, ended], return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            ended.cancel()
            return True
        stopping.cancel()
        await ended
        self._asked.say("cluster", "no broker is left to run: the cluster ends")
        return False

    async def _told_to_stop(self) -> None:
        await self._asked.stopping.wait()

    async def _drain(self, broker: PlannedBroker) -> None:
        """Watches a broker that leaves, and stops it once it has been read-only for long enough and holds nothing."""
        child, pace, told = self._brokers[broker.name], self._asked.pace, ""
        await child.ready.wait()
        read_only_since_s = self._asked.world.steady_s()
        while True:
            await asyncio.sleep(pace.look_every_s)
            if child.address is None:
                continue
            try:
                remainder = await remainder_of(child.address)
            except AdminError as error:
                text, is_drained = f"it cannot be asked what it holds: {error}", False
            else:
                text, is_drained = f"it still holds {remainder.told()}", remainder.is_empty
            if is_drained and self._asked.world.steady_s() - read_only_since_s >= pace.read_only_at_least_s:
                break
            if not is_drained and text != told:
                self._asked.say("cluster", f"{broker.name} leaves: {text}")
                told = text
        await child.stop()
        text = f"{broker.name} was drained and stopped; remove its store when nobody needs it"
        try:
            mark_taken_away(self._plan.folder, broker.name, text)
        except OSError as error:
            self._asked.say("cluster", f"{broker.name} is stopped, and cannot be marked: {error}. The next start drains it again")
            return
        store = broker.settings.store_root
        self._asked.say(
            "cluster", f"{broker.name} is drained and stopped. Its store stays in {store}: reconcile may still read it"
        )

    async def _stop(self, tasks: Collection[asyncio.Task[None]]) -> None:
        """Stops the brokers, then the name server, so that clients find the others' routes until the end."""
        await asyncio.gather(*(child.stop() for child in self._brokers.values()))
        if self._name_server is not None:
            await self._name_server.stop()
        for task in tasks:
            if task.get_name() not in {*self._brokers, "namesrv"}:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _first(self, *events: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


async def _ends_of(tasks: Collection[asyncio.Task[None]]) -> None:
    """Returns when all have ended. Cancelling it leaves them alone."""
    for task in tasks:
        await asyncio.shield(task)
