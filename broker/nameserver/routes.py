"""The table of brokers and topics (RocketMQ's RouteInfoManager)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from broker.protocol.bodies import DataVersion, TopicConfigSerializeWrapper
from broker.protocol.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicRouteData

BROKER_EXPIRES_MS = 120_000
"""A broker that has not registered for this long is forgotten; brokers register every 30 s."""

READ = 4
WRITE = 2


@dataclass(slots=True)
class _LiveBroker:
    cluster: str
    name: str
    broker_id: int
    connection: Hashable
    ha_address: str
    data_version: DataVersion
    filter_servers: list[str]
    last_update_ms: int


@dataclass(frozen=True, slots=True)
class Master:
    """Where a slave finds its master."""

    address: str | None = None
    ha_address: str | None = None


@dataclass(slots=True)
class Routes:
    """What brokers registered. A topic whose last broker goes is forgotten."""

    _live: dict[str, _LiveBroker] = field(default_factory=dict)
    """By address."""
    _brokers: dict[str, BrokerData] = field(default_factory=dict)
    """By broker name."""
    _topics: dict[str, dict[str, QueueData]] = field(default_factory=dict)
    """Topic -> broker name -> queues."""

    def register(
        self,
        connection: Hashable,
        *,
        cluster: str,
        name: str,
        broker_id: int,
        address: str,
        ha_address: str,
        topics: TopicConfigSerializeWrapper,
        filter_servers: list[str],
        now_ms: int,
    ) -> Master:
        """Takes over what a broker says of itself, and tells a slave who its master is."""
        broker = self._brokers.setdefault(name, BrokerData(cluster=cluster, broker_name=name, broker_addrs={}))
        for other_id in [other for other, known in broker.broker_addrs.items() if known == address and other != broker_id]:
            del broker.broker_addrs[other_id]
        is_new = broker_id not in broker.broker_addrs
        broker.broker_addrs[broker_id] = address
        known_version = self.data_version(address)
        if broker_id == MASTER_ID and (is_new or known_version != topics.data_version):
            self._take_topics(name, topics)
        self._live[address] = _LiveBroker(
            cluster, name, broker_id, connection, ha_address, topics.data_version, filter_servers, now_ms
        )
        master_address = broker.broker_addrs.get(MASTER_ID)
        if broker_id == MASTER_ID or master_address is None:
            return Master()
        live_master = self._live.get(master_address)
        return Master(master_address, live_master.ha_address if live_master else None)

    def unregister(self, *, name: str, broker_id: int, address: str) -> None:
        """A broker says goodbye."""
        self._live.pop(address, None)
        broker = self._brokers.get(name)
        if broker is not None and broker.broker_addrs.get(broker_id) == address:
            del broker.broker_addrs[broker_id]
            if not broker.broker_addrs:
                del self._brokers[name]
                self._delete_queues(name, lambda topic: True)

    def forget(self, connection: Hashable) -> None:
        """The connection is closed: the brokers that registered by it are gone."""
        for address, live in list(self._live.items()):
            if live.connection is connection:
                self.unregister(name=live.name, broker_id=live.broker_id, address=address)

    def expire(self, now_ms: int) -> list[str]:
        """Forgets the brokers that fell silent, and says which."""
        silent = [address for address, live in self._live.items() if now_ms - live.last_update_ms > BROKER_EXPIRES_MS]
        for address in silent:
            live = self._live[address]
            self.unregister(name=live.name, broker_id=live.broker_id, address=address)
        return silent

    def data_version(self, address: str) -> DataVersion | None:
        """The version of the topics that the broker registered last."""
        live = self._live.get(address)
        return live.data_version if live else None

    def renew(self, address: str, now_ms: int) -> None:
        """The broker is there, and has nothing new."""
        if address in self._live:
            self._live[address].last_update_ms = now_ms

    def route(self, topic: str) -> TopicRouteData | None:
        """Where the topic's queues are, or None if no broker has it."""
        queues = self._topics.get(topic, {})
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        addresses = [address for broker in brokers for address in broker.broker_addrs.values()]
        filter_servers = {
            address: self._live[address].filter_servers
            for address in addresses
            if address in self._live and self._live[address].filter_servers
        }
        return TopicRouteData(queue_datas=list(queues.values()), broker_datas=brokers, filter_server_table=filter_servers)

    def cluster_info(self) -> ClusterInfo:
        """All brokers, and the clusters they form."""
        return ClusterInfo(broker_addr_table=dict(self._brokers), cluster_addr_table=self._clusters())

    def topics(self) -> list[str]:
        """All topics."""
        return list(self._topics)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """The topics that a broker of the cluster has."""
        names = set(self._clusters().get(cluster, ()))
        return [topic for topic, queues in self._topics.items() if names & queues.keys()]

    def topics_where(self, condition: Callable[[QueueData], bool]) -> list[str]:
        """The topics of whose queues one satisfies the condition."""
        return [topic for topic, queues in self._topics.items() if any(condition(data) for data in queues.values())]

    def cluster_and_broker_names(self) -> list[str]:
        """The names that are topics of the system's own."""
        return [name for cluster, brokers in self._clusters().items() for name in (cluster, *brokers)]

    def any_broker_address(self) -> str | None:
        """The address of some broker."""
        return next((address for broker in self._brokers.values() for address in broker.broker_addrs.values()), None)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forgets a topic, everywhere or on the brokers of one cluster."""
        if not cluster:
            self._topics.pop(topic, None)
            return
        for name in self._clusters().get(cluster, ()):
            self._delete_queues(name, lambda candidate: candidate == topic)

    def set_writeable(self, broker_name: str, *, is_writeable: bool) -> int:
        """Allows or forbids sending to all topics of a broker; how many it has."""
        count = 0
        for queues in self._topics.values():
            data = queues.get(broker_name)
            if data is not None:
                data.perm = READ | WRITE if is_writeable else data.perm & ~WRITE
                count += 1
        return count

    def _clusters(self) -> dict[str, list[str]]:
        clusters: dict[str, list[str]] = {}
        for name, broker in self._brokers.items():
            clusters.setdefault(broker.cluster, []).append(name)
        return clusters

    def _take_topics(self, broker_name: str, topics: TopicConfigSerializeWrapper) -> None:
        for config in topics.topic_config_table.values():
            self._topics.setdefault(config.topic_name, {})[broker_name] = QueueData(
                broker_name=broker_name,
                read_queue_nums=config.read_queue_nums,
                write_queue_nums=config.write_queue_nums,
                perm=config.perm,
                topic_sys_flag=config.topic_sys_flag,
            )

    def _delete_queues(self, broker_name: str, concerns: Callable[[str], bool]) -> None:
        for topic in [topic for topic, queues in self._topics.items() if broker_name in queues and concerns(topic)]:
            del self._topics[topic][broker_name]
            if not self._topics[topic]:
                del self._topics[topic]
