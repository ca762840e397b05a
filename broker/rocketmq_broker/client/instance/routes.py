"""The routes of the topics that a client uses, updated regularly (RocketMQ's MQClientInstance)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from rocketmq_broker.client.errors import BrokerUnreachable, ClientError, NameServerUnreachable, NoRoute
from rocketmq_broker.client.instance.name_servers import NameServers
from rocketmq_broker.client.instance.rhythm import Rhythm
from rocketmq_broker.client.instance.topic_queues import check_queue_counts, publish_queues, subscribe_queues
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.route import MASTER_ID, TopicRouteData
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.tasks import Tasks

logger = logging.getLogger(__name__)

DEFAULT_TOPIC_QUEUE_NUMS = 4
"""The default number of queues that producers ask for when their message creates a topic (DefaultMQProducer)."""
POLL_INTERVAL_S = 30.0
MISSING_INTERVAL_S = 2.0
"""Pause before the next request for an unknown topic, or after no name server answered."""
MISSING_LONG_INTERVAL_S = 10.0
"""The longest such pause, where a topic has been unknown for minutes."""
_ASKED_EVERY_S = MISSING_INTERVAL_S, MISSING_LONG_INTERVAL_S
_SOON_S = 0.5
_PATIENCE_S = 1.0
"""Wait of a new topic for name servers that hang, where brokers create topics: half of a send at most."""


class Routes:
    """A cache of routes, read at first use and then every 30 s. Known routes stay while name servers are away.

    So do the queues of a topic that its first message created: brokers may serve it long before a name server knows it.
    """

    def __init__(self, name_servers: NameServers, *, queues_of_new_topics: int = DEFAULT_TOPIC_QUEUE_NUMS) -> None:
        self._name_servers = name_servers
        self.queues_of_new_topics = queues_of_new_topics
        """The number of queues of a topic that its first message creates, unless the broker has fewer for such topics."""
        self._routes: dict[str, TopicRouteData] = {}
        self._publish_queues: dict[str, list[MessageQueue]] = {}
        self._cluster: Mapping[str, Mapping[int, str]] = {}
        self._brokers: dict[str, dict[int, str]] = {}
        self._watched: set[str] = set()
        self._fetching: dict[str, asyncio.Task[TopicRouteData | None]] = {}
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._is_refresh_due = False
        self._said: set[str] = set()
        self.on_change: Callable[[], None] = lambda: None
        """Called after a change of a topic's route."""

    @property
    def asked_at(self) -> str:
        """Returns the addresses of the name servers, in NAMESRV_ADDR's form."""
        return ";".join(self._name_servers.addresses)

    def start(self) -> None:
        """Begins to update the routes."""
        self._tasks.start("client-routes", self._poll())

    async def stop(self) -> None:
        """Ends the background work."""
        fetching = set(self._fetching.values())
        for task in fetching:
            task.cancel()
        await self._tasks.stop()
        await asyncio.gather(*fetching, return_exceptions=True)

    def watch(self, topic: str) -> None:
        """Keeps the route of this topic up to date, also before the topic exists."""
        self._watched.add(topic)

    def refresh_soon(self) -> None:
        """Updates the routes soon, because a broker went away or refused."""
        self._is_refresh_due = True
        self._wake.set()

    def look_for_missing(self) -> None:
        """Asks for the missing topics at once, because a broker says that something changed."""
        if not self._watched <= self._routes.keys():
            self._wake.set()

    async def queues_to_publish(self, topic: str) -> list[MessageQueue]:
        """Returns the queues for messages to the topic; those of a new topic if brokers create topics.

        Raises NoRoute or NameServerUnreachable.
        """
        if queues := self._known_queues(topic):
            return queues
        self.watch(topic)
        try:
            async with asyncio.timeout(_PATIENCE_S if topics.AUTO_CREATE_TOPIC in self._routes else None):
                if await self._fetch(topic) is None:
                    await self._fetch(topics.AUTO_CREATE_TOPIC)
        except (NameServerUnreachable, TimeoutError):
            if topics.AUTO_CREATE_TOPIC not in self._routes:
                raise
        if queues := self._known_queues(topic) or self._queues_of_template(topic):
            return queues
        if topic in self._routes:
            raise NoRoute(f"no broker takes messages for topic {topic} now: its masters are down or it is read-only")
        raise NoRoute(
            f"no broker has topic {topic}, and none creates topics by itself (autoCreateTopicEnable). "
            f"Is a broker registered at {';'.join(self._name_servers.addresses)}? If so: Producer.create_topic"
        )

    def _known_queues(self, topic: str) -> list[MessageQueue]:
        """Returns the known queues for sending; none if they are unknown, or if no broker takes messages now."""
        queues = self._publish_queues.get(topic)
        if queues is None and (route := self._routes.get(topic)) is not None:
            queues = publish_queues(topic, route)
            if queues:
                self._publish_queues[topic] = queues
        return queues or []

    def _queues_of_template(self, topic: str) -> list[MessageQueue]:
        """Returns the queues of a topic that its first message creates. They count until a name server knows it (`_learn`)."""
        template = self._routes.get(topics.AUTO_CREATE_TOPIC)
        if topic in self._routes or template is None:
            return []
        queues = publish_queues(topic, template, at_most=self.queues_of_new_topics)
        if queues:
            self._publish_queues[topic] = queues
            self.refresh_soon()
        return queues

    def queues_to_subscribe(self, topic: str) -> list[MessageQueue] | None:
        """Returns the readable queues of a watched topic; None while the topic is unknown."""
        route = self._routes.get(topic)
        return None if route is None else subscribe_queues(topic, route)

    async def refresh(self, topic: str) -> bool:
        """Reads the topic's route now. Returns whether it is known. Raises NameServerUnreachable."""
        self.watch(topic)
        return await self._fetch(topic) is not None or topic in self._routes

    async def refresh_if_unknown(self, topic: str) -> None:
        """Reads the topic's route unless it is known. Raises NameServerUnreachable, NoRoute if no name server knows it."""
        if topic not in self._routes and not await self.refresh(topic):
            raise NoRoute(f"no broker has topic {topic}")

    async def address_of(self, broker_name: str, broker_id: int = MASTER_ID, *, or_any: bool = False) -> str:
        """Returns the broker's address. With `or_any` another broker of its name will do. Raises BrokerUnreachable."""
        for attempt in range(2):
            addresses = self._brokers.get(broker_name, {})
            if (address := addresses.get(broker_id)) is not None:
                return address
            if or_any and addresses:
                return next(iter(addresses.values()))
            if attempt == 0:
                await self._refresh(self._watched)
        raise BrokerUnreachable(f"no name server knows where broker {broker_name} is: it is down or not registered")

    @property
    def brokers(self) -> Mapping[str, Mapping[int, str]]:
        """Returns addresses by broker name and broker id, for all brokers with a topic of interest."""
        return self._brokers

    @property
    def masters(self) -> list[str]:
        """Returns the addresses of the masters."""
        return [by_id[MASTER_ID] for by_id in self._brokers.values() if MASTER_ID in by_id]

    async def _poll(self) -> None:
        """Asks for all topics at each beat, and sooner for those that are missing."""
        rhythm = Rhythm(POLL_INTERVAL_S)
        backoff = Backoff(MISSING_INTERVAL_S, MISSING_INTERVAL_S, in_outages_s=MISSING_LONG_INTERVAL_S)
        missing = await self._refresh(self._watched)
        while True:
            if not missing:
                backoff.succeeded()
            try:
                async with asyncio.timeout_at(rhythm.next_s(backoff.next_pause_s() if missing else None)):
                    await self._wake.wait()
            except TimeoutError:
                missing = await self._refresh(self._watched if rhythm.is_due else missing)
                continue
            self._wake.clear()
            if not self._is_refresh_due:
                missing = await self._refresh(missing)
                continue
            await asyncio.sleep(_SOON_S)
            self._is_refresh_due = False
            missing = await self._refresh(self._watched)

    async def _refresh(self, asked_for: Collection[str]) -> list[str]:
        """Updates these routes. Returns the topics that are unknown and should not be, and those that could not be asked for."""
        missing: list[str] = []
        left = sorted(asked_for)
        for position, topic in enumerate(left):
            try:
                known = await self._fetch(topic) is not None
                if not known and topic == topics.AUTO_CREATE_TOPIC:
                    known = await self._fetch_cluster()
                if not known and topic not in self._routes:
                    self._say_once(
                        topic, "topic %s does not exist yet; it is asked for again every %g to %g s", topic, *_ASKED_EVERY_S
                    )
            except NameServerUnreachable as error:
                self._say_once("", "%s; it is tried again every %g to %g s", error, *_ASKED_EVERY_S)
                return missing + left[position:]
            except (ClientError, ProtocolError) as error:
                self._say_once(topic, "the route of topic %s cannot be had: %s", topic, error)
                known = False
            if not known and topic not in self._routes:
                missing.append(topic)
        self._said.discard("")
        if missing and not self._brokers:
            await self._meet_brokers()
        return missing

    async def _meet_brokers(self) -> None:
        """Learns which brokers there are: to one that gets this client's heartbeats, the client need not ask for new topics."""
        try:
            if await self._fetch_cluster():
                self.on_change()
        except (ClientError, ProtocolError) as error:
            logger.debug("the brokers are not known: %s", error)

    async def _fetch(self, topic: str) -> TopicRouteData | None:
        """Asks the name servers, once for any number of simultaneous callers."""
        task = self._fetching.get(topic)
        if task is None:
            task = self._fetching[topic] = asyncio.get_running_loop().create_task(self._name_servers.find_route(topic))
            task.add_done_callback(lambda ended: self._fetched(topic, ended))
        route = await asyncio.shield(task)
        if route is not None:
            check_queue_counts(topic, route)
            self._learn(topic, route)
        return route

    def _fetched(self, topic: str, task: asyncio.Task[TopicRouteData | None]) -> None:
        self._fetching.pop(topic, None)
        if not task.cancelled():
            task.exception()  # the waiting callers have it; without one it is no news

    async def _fetch_cluster(self) -> bool:
        """Reads the brokers. Returns whether there are any: a name server that has just started may know none."""
        info = await self._name_servers.cluster_info()
        if info is None:
            return False
        self._cluster = {name: broker.broker_addrs for name, broker in info.broker_addr_table.items()}
        self._gather_brokers()
        return bool(self._cluster)

    def _learn(self, topic: str, route: TopicRouteData) -> None:
        self._said.discard(topic)
        if self._routes.get(topic) == route:
            return
        self._routes[topic] = route
        self._publish_queues.pop(topic, None)
        self._gather_brokers()
        self.on_change()

    def _gather_brokers(self) -> None:
        brokers: dict[str, dict[int, str]] = {name: dict(addresses) for name, addresses in self._cluster.items()}
        for route in self._routes.values():
            for broker in route.broker_datas:
                brokers[broker.broker_name] = dict(broker.broker_addrs)
        self._brokers = brokers

    def _say_once(self, about: str, message: str, *args: object) -> None:
        if about not in self._said and not about.startswith(topics.RETRY_PREFIX) and about != topics.AUTO_CREATE_TOPIC:
            self._said.add(about)
            logger.warning(message, *args)
