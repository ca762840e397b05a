"""The routes of the topics that a client uses, updated periodically (RocketMQ's MQClientInstance)."""

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
"""The number of queues that a producer requests by default when its message creates a topic (DefaultMQProducer)."""
POLL_INTERVAL_S = 30.0
MISSING_INTERVAL_S = 2.0
"""The pause in seconds before the next request for an unknown topic, or after a request that no name server answered."""
MISSING_LONG_INTERVAL_S = 10.0
"""The pause in seconds before the next request for a topic that has been unknown for minutes."""
_RETRIED_EVERY_S = MISSING_INTERVAL_S, MISSING_LONG_INTERVAL_S
_SOON_S = 0.5
_NEW_TOPIC_TIMEOUT_S = 1.0
"""The timeout in seconds for the route of a topic that a broker may create. It is short, to leave most of the send timeout."""


class Routes:
    """Caches routes, which are read at first use and then every 30 s. Routes are kept while no name server is reachable.

    Also keeps the queues of a topic that was created by its first message, because the broker may register the topic with
    the name servers much later.
    """

    def __init__(self, name_servers: NameServers, *, queues_of_new_topics: int = DEFAULT_TOPIC_QUEUE_NUMS) -> None:
        self._name_servers = name_servers
        self.queues_of_new_topics = queues_of_new_topics
        """The number of queues of a topic that its first message creates, unless the broker allows fewer."""
        self._routes: dict[str, TopicRouteData] = {}
        self._publish_queues: dict[str, list[MessageQueue]] = {}
        self._cluster: Mapping[str, Mapping[int, str]] = {}
        self._brokers: dict[str, dict[int, str]] = {}
        self._watched: set[str] = set()
        self._fetching: dict[str, asyncio.Task[TopicRouteData | None]] = {}
        self._tasks = Tasks()
        self._wake = asyncio.Event()
        self._is_refresh_due = False
        self._logged: set[str] = set()
        self.on_change: Callable[[], None] = lambda: None
        """A callback after a change of a topic's route."""

    @property
    def namesrv_addr(self) -> str:
        """Returns the addresses of the name servers, in the format of NAMESRV_ADDR."""
        return ";".join(self._name_servers.addresses)

    def start(self) -> None:
        """Starts updating the routes."""
        self._tasks.start("client-routes", self._poll())

    async def stop(self) -> None:
        """Stops the background tasks."""
        fetching = set(self._fetching.values())
        for task in fetching:
            task.cancel()
        await self._tasks.stop()
        await asyncio.gather(*fetching, return_exceptions=True)

    def watch(self, topic: str) -> None:
        """Keeps the route of this topic up to date, even if the topic does not exist yet."""
        self._watched.add(topic)

    def refresh_soon(self) -> None:
        """Schedules an update of all routes. Call this method after a broker has become unreachable or has refused a request."""
        self._is_refresh_due = True
        self._wake.set()

    def look_for_missing(self) -> None:
        """Requests the routes of unknown topics at once. Call this method when a broker reports a change."""
        if not self._watched <= self._routes.keys():
            self._wake.set()

    async def queues_to_publish(self, topic: str) -> list[MessageQueue]:
        """Returns the queues for sending to the topic. For a new topic, returns the queues that brokers will create for it.

        Raises NoRoute or NameServerUnreachable.
        """
        if queues := self._known_queues(topic):
            return queues
        self.watch(topic)
        try:
            async with asyncio.timeout(_NEW_TOPIC_TIMEOUT_S if topics.AUTO_CREATE_TOPIC in self._routes else None):
                if await self._fetch(topic) is None:
                    await self._fetch(topics.AUTO_CREATE_TOPIC)
        except (NameServerUnreachable, TimeoutError):
            if topics.AUTO_CREATE_TOPIC not in self._routes:
                raise
        if queues := self._known_queues(topic) or self._queues_of_template(topic):
            return queues
        if topic in self._routes:
            raise NoRoute(f"no broker accepts messages for topic {topic}: its masters are down or it is read-only")
        raise NoRoute(
            f"no broker has topic {topic}, and none creates it automatically (autoCreateTopicEnable): check that a broker "
            f"is registered at {self.namesrv_addr}, and create the topic with Producer.create_topic"
        )

    def _known_queues(self, topic: str) -> list[MessageQueue]:
        """Returns the known queues for sending. The list is empty if they are unknown or no broker accepts messages now."""
        queues = self._publish_queues.get(topic)
        if queues is None and (route := self._routes.get(topic)) is not None:
            queues = publish_queues(topic, route)
            if queues:
                self._publish_queues[topic] = queues
        return queues or []

    def _queues_of_template(self, topic: str) -> list[MessageQueue]:
        """Returns the queues that brokers will create for a new topic.

        `_learn` later replaces them with the registered queues.
        """
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
        """Reads the topic's route now. Returns True if it is known. Raises NameServerUnreachable."""
        self.watch(topic)
        return await self._fetch(topic) is not None or topic in self._routes

    async def refresh_if_unknown(self, topic: str) -> None:
        """Reads the topic's route unless it is known. Raises NameServerUnreachable, or NoRoute if the topic is unknown."""
        if topic not in self._routes and not await self.refresh(topic):
            raise NoRoute(f"no broker has topic {topic}: check the spelling, or create the topic")

    async def address_of(self, broker_name: str, broker_id: int = MASTER_ID, *, or_any: bool = False) -> str:
        """Returns the broker's address. `or_any` allows another broker of that name. Raises BrokerUnreachable."""
        for attempt in range(2):
            addresses = self._brokers.get(broker_name, {})
            if (address := addresses.get(broker_id)) is not None:
                return address
            if or_any and addresses:
                return next(iter(addresses.values()))
            if attempt == 0:
                await self._refresh(self._watched)
        raise BrokerUnreachable(f"broker {broker_name} has no address at any name server: it is down or not registered")

    @property
    def brokers(self) -> Mapping[str, Mapping[int, str]]:
        """Returns addresses keyed by broker name and then by broker id, for all brokers that have one of the client's topics."""
        return self._brokers

    @property
    def masters(self) -> list[str]:
        """Returns the addresses of the masters."""
        return [by_id[MASTER_ID] for by_id in self._brokers.values() if MASTER_ID in by_id]

    async def _poll(self) -> None:
        """Requests the routes of all topics at each beat, and those of unknown topics sooner."""
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
        """Updates the routes of these topics. Returns the topics that are still unknown or that could not be requested."""
        missing: list[str] = []
        left = sorted(asked_for)
        for position, topic in enumerate(left):
            try:
                known = await self._fetch(topic) is not None
                if not known and topic == topics.AUTO_CREATE_TOPIC:
                    known = await self._fetch_cluster()
                if not known and topic not in self._routes:
                    self._log_once(topic, "topic %s does not exist yet; retrying every %g to %g s", topic, *_RETRIED_EVERY_S)
            except NameServerUnreachable as error:
                self._log_once("", "%s; retrying every %g to %g s", error, *_RETRIED_EVERY_S)
                return missing + left[position:]
            except (ClientError, ProtocolError) as error:
                self._log_once(topic, "the route of topic %s cannot be read: %s", topic, error)
                known = False
            if not known and topic not in self._routes:
                missing.append(topic)
        self._logged.discard("")
        if missing and not self._brokers:
            await self._discover_brokers()
        return missing

    async def _discover_brokers(self) -> None:
        """Reads the list of brokers, so that this client sends heartbeats to the brokers and is notified of new topics."""
        try:
            if await self._fetch_cluster():
                self.on_change()
        except (ClientError, ProtocolError) as error:
            logger.debug("the list of brokers cannot be read: %s", error)

    async def _fetch(self, topic: str) -> TopicRouteData | None:
        """Requests the route from the name servers. Simultaneous callers share one request."""
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
            task.exception()  # the waiting callers get it; without any, asyncio must not log it

    async def _fetch_cluster(self) -> bool:
        """Reads the list of brokers.

        Returns False if it is empty, because no broker has registered since the name server started.
        """
        info = await self._name_servers.cluster_info()
        if info is None:
            return False
        self._cluster = {name: broker.broker_addrs for name, broker in info.broker_addr_table.items()}
        self._gather_brokers()
        return bool(self._cluster)

    def _learn(self, topic: str, route: TopicRouteData) -> None:
        self._logged.discard(topic)
        if self._routes.get(topic) == route:
            return
        self._routes.pop(topic, None)  # so that the newest route is the last one
        self._routes[topic] = route
        self._publish_queues.pop(topic, None)
        self._gather_brokers()
        self.on_change()

    def _gather_brokers(self) -> None:
        brokers: dict[str, dict[int, str]] = {name: dict(addresses) for name, addresses in self._cluster.items()}
        for route in self._routes.values():  # a broker has the address in its newest route: a deleted topic's has the old master
            for broker in route.broker_datas:
                brokers[broker.broker_name] = dict(broker.broker_addrs)
        self._brokers = brokers

    def _log_once(self, about: str, message: str, *args: object) -> None:
        if about not in self._logged and not about.startswith(topics.RETRY_PREFIX) and about != topics.AUTO_CREATE_TOPIC:
            self._logged.add(about)
            logger.warning(message, *args)
