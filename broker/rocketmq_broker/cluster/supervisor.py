"""Starts a name server and brokers, keeps them running, removes brokers once they are drained, and stops all of them."""

import asyncio
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.cluster.child import Child
from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import locked, mark_removed, read_folder, unmark, write_broker_conf, write_namesrv_conf
from rocketmq_broker.cluster.leaving import DrainPace, remainder_of
from rocketmq_broker.cluster.plan import ClusterPlan, PlannedBroker, plan_cluster
from rocketmq_broker.cluster.spreading import POLL_INTERVAL_S, TopicSpreading, copy_topics, topics_in
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message import topics
from rocketmq_broker.store.errors import StoreError
from rocketmq_broker.world import World


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """The options of `supervise`."""

    settings: BrokerSettings
    """The settings of the first broker. storePathRootDir is the folder of the cluster."""
    brokers: int
    report: Callable[[str, str], None]
    """Called for each line with the name of its source (a process or `cluster`) and the text."""
    world: World
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """The event that stops the cluster when it is set."""
    pace: DrainPace = field(default_factory=DrainPace)

    def say(self, text: str) -> None:
        """Reports a line of the cluster itself."""
        self.report("cluster", text)


async def supervise(options: SupervisorOptions) -> bool:
    """Runs the cluster until `options.stopping` is set. Returns False if all brokers have failed too often.

    Raises ClusterMistake.
    """
    with locked(options.settings.store_root):
        plan = plan_cluster(options.settings, options.brokers, read_folder(options.settings.store_root))
        spreading = _prepare(plan, options)
        return await _Running(plan, options, spreading).run()


def _prepare(plan: ClusterPlan, options: SupervisorOptions) -> TopicSpreading:
    """Prepares the folder and reports each broker that joins or leaves. Raises ClusterMistake."""
    names = [broker.name for broker in plan.brokers]
    members = [broker.settings.store_root for broker in plan.brokers if not broker.is_new]
    cluster = options.settings.broker_cluster_name
    excluded = frozenset([*names, cluster, topics.reply_topic(cluster)])
    try:
        for broker in plan.brokers:
            if broker.is_new and members:
                count = copy_topics(broker.settings.store_root, members, excluded=excluded, now_ms=options.world.wall_ms())
                options.say(f"{broker.name} is new: it starts with the other brokers' topics ({count}) and no messages")
            if broker.is_rejoining:
                options.say(f"{broker.name} rejoins the cluster with its old store")
            if not broker.is_leaving:
                unmark(plan.folder, broker.name)
        spreading = TopicSpreading(topics_in(members), excluded)
    except (StoreError, OSError) as error:
        raise ClusterMistake(f"cannot use the folder {plan.folder}: {error}") from None
    _report_removals(plan, options)
    return spreading


def _report_removals(plan: ClusterPlan, options: SupervisorOptions) -> None:
    """Reports the brokers that were removed before, and those that now leave the cluster."""
    for name in plan.removed:
        options.say(f"{name} was removed before and is not started; its store is kept in {plan.folder / name}")
    for broker in plan.brokers:
        if broker.is_leaving:
            options.say(
                f"{broker.name} leaves the cluster: clients no longer send to it, and it is stopped once it is drained. "
                f"To keep it, start the cluster with --brokers {broker.number}"
            )


class _Running:
    def __init__(self, plan: ClusterPlan, options: SupervisorOptions, spreading: TopicSpreading) -> None:
        self._plan = plan
        self._spreading = spreading
        self._options = options
        self._name_server = self._child("namesrv", "rocketmq_broker.nameserver") if plan.has_name_server else None
        self._brokers = {broker.name: self._child(broker.name, "rocketmq_broker", broker) for broker in plan.brokers}

    def _child(self, name: str, module: str, broker: PlannedBroker | None = None) -> Child:
        if broker is None:
            conf = write_namesrv_conf(self._plan, self._options.settings)
        else:
            conf = write_broker_conf(self._plan.folder, broker.settings)
        command = [sys.executable, "-m", "rocketmq_broker.cluster.member", module, "-c", str(conf)]
        return Child(name, command, self._options.report, self._options.world)

    async def run(self) -> bool:
        tasks: list[asyncio.Task[None]] = []
        try:
            if self._name_server is not None:
                tasks.append(asyncio.create_task(self._name_server.run(), name="namesrv"))
                await self._name_server_ready(self._name_server)
            brokers = [asyncio.create_task(child.run(), name=child.name) for child in self._brokers.values()]
            leaving = [broker for broker in self._plan.brokers if broker.is_leaving]
            tasks += [*brokers, *(asyncio.create_task(self._drain(broker), name=f"drains {broker.name}") for broker in leaving)]
            tasks.append(asyncio.create_task(self._report_when_all_are_ready(), name="reports the start"))
            tasks.append(asyncio.create_task(self._spread_topics(), name="spreads new topics"))
            return await self._watch(brokers)
        finally:
            await self._stop(tasks)

    async def _name_server_ready(self, child: Child) -> None:
        await self._wait_for_any(child.ready, child.died, self._options.stopping)
        if child.died.is_set() and not child.ready.is_set():
            raise ClusterMistake(f"the name server cannot start on {self._plan.namesrv_addr}: see its error message above")

    async def _report_when_all_are_ready(self) -> None:
        for child in self._brokers.values():
            await child.ready.wait()
        addresses = ", ".join(f"{child.name} {child.address}" for child in self._brokers.values())
        cluster = self._options.settings.broker_cluster_name
        place = f"name server is {self._plan.namesrv_addr}, folder {self._plan.folder}"
        self._options.say(f"The cluster[{cluster}, {addresses}] boot success. {place}")

    async def _spread_topics(self) -> None:
        """Polls for new topics while all brokers that stay in the cluster are ready."""
        staying = [self._brokers[broker.name] for broker in self._plan.brokers if not broker.is_leaving]
        name_server, reported = self._plan.namesrv_addr.split(";")[0], ""
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            addresses = [child.address for child in staying if child.address is not None]
            if len(addresses) < len(staying):
                continue
            try:
                new = await self._spreading.spread(name_server, addresses)
            except AdminError as error:
                if str(error) != reported:
                    reported = str(error)
                    self._options.say(f"new topics cannot be created on the other brokers: {reported}")
                continue
            reported = ""
            if new and len(staying) > 1:
                self._options.say(f"new topics created on all brokers: {', '.join(new)}")

    async def _watch(self, brokers: Collection[asyncio.Task[None]]) -> bool:
        """Waits until the cluster must stop or no broker will be restarted. Returns False in the second case."""
        stopping = asyncio.create_task(self._options.stopping.wait(), name="stop requested")
        ended = asyncio.create_task(_ends_of(brokers), name="ends of brokers")
        await asyncio.wait([stopping, ended], return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            ended.cancel()
            return True
        stopping.cancel()
        await ended
        self._options.say("all brokers were given up: the cluster stops")
        return False

    async def _drain(self, broker: PlannedBroker) -> None:
        """Stops a leaving broker after it has been read-only for the minimum time and has no messages left."""
        child, pace, reported = self._brokers[broker.name], self._options.pace, ""
        await child.ready.wait()
        read_only_since_s = self._options.world.steady_s()
        while True:
            await asyncio.sleep(pace.poll_interval_s)
            if child.address is None:
                continue
            try:
                remainder = await remainder_of(child.address)
            except AdminError as error:
                text, is_drained = f"cannot count the messages that it holds: {error}", False
            else:
                text, is_drained = f"it still holds {remainder.text()}", remainder.is_empty
            if is_drained and self._options.world.steady_s() - read_only_since_s >= pace.min_read_only_s:
                break
            if not is_drained and text != reported:
                self._options.say(f"{broker.name} is draining: {text}")
                reported = text
        await child.stop()
        text = f"{broker.name} was drained and stopped; delete its store when it is no longer needed"
        try:
            mark_removed(self._plan.folder, broker.name, text)
        except OSError as error:
            self._options.say(f"{broker.name} is stopped but not marked as removed: {error}. The next start drains it again")
            return
        store = broker.settings.store_root
        self._options.say(f"{broker.name} is drained and stopped. Its store is kept in {store} and reconcile may still read it")

    async def _stop(self, tasks: Collection[asyncio.Task[None]]) -> None:
        """Stops the brokers and then the name server, so that clients can look up routes until the last broker has stopped."""
        await asyncio.gather(*(child.stop() for child in self._brokers.values()))
        if self._name_server is not None:
            await self._name_server.stop()
        for task in tasks:
            if task.get_name() not in {*self._brokers, "namesrv"}:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_any(self, *events: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


async def _ends_of(tasks: Collection[asyncio.Task[None]]) -> None:
    """Waits until all tasks have ended. Cancelling this call does not cancel the tasks."""
    for task in tasks:
        await asyncio.shield(task)
