"""The table of brokers and topics (RocketMQ's RouteInfoManager)."""

import logging
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass, field

from rocketmq_broker.message import permissions
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.nameserver import limits
from rocketmq_broker.nameserver.live_brokers import LiveBroker, LiveBrokers
from rocketmq_broker.protocol.bodies.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicRouteData
from rocketmq_broker.protocol.bodies.topic import DataVersion, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused

TOPICS_AT_ONCE = 500
"""The number of topics of a registration that are stored in one step, which takes 1 ms."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Broker:
    """The brokers with one name (a master and its slaves), and the master's topics."""

    data: BrokerData
    queues: dict[str, QueueData] = field(default_factory=dict)
    """The broker's queues keyed by topic.

    Each broker has its own table, so removing a broker takes the same short time for any number of topics.
    """


@dataclass(frozen=True, slots=True)
class Master:
    """The addresses of a slave's master."""

    address: str | None = None
    ha_address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """The content of a broker's registration."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str
    topics: TopicConfigSerializeWrapper
    filter_servers: list[str]


class RouteTable:
    """A table of the registered brokers and their topics. A topic is removed together with the last broker that has it."""

    def __init__(self) -> None:
        self._live = LiveBrokers()
        self._brokers: dict[str, _Broker] = {}
        """Brokers keyed by name."""

    def register(self, connection: Hashable, registration: BrokerRegistration, now_ms: int) -> Generator[None, None, Master]:
        """Stores a registration in steps. For a slave, returns the addresses of its master. Raises RequestRefused."""
        name, broker_id, address = registration.name, registration.broker_id, registration.address
        _refuse_too_much(registration)
        broker = self._brokers.get(name)
        holder_address = broker.data.broker_addrs.get(broker_id) if broker is not None else None
        self._live.refuse_stranger(connection, name=name, address=address, holder_address=holder_address, now_ms=now_ms)
        self._forget_former_name(address, name)
        known_version = self.data_version(address)
        live = _live_broker(connection, registration, now_ms)
        self._live.put(live)
        if broker is None:
            data = BrokerData(cluster=registration.cluster, broker_name=name, broker_addrs={})
            broker = self._brokers[name] = _Broker(data)
        addresses = broker.data.broker_addrs
        for other_id in [other for other, known in addresses.items() if known == address and other != broker_id]:
            del addresses[other_id]
        is_new = broker_id not in addresses
        if holder_address is not None and holder_address != address:
            logger.warning("broker %r with id %d moved from %r to %r", name, broker_id, holder_address, address)
            self._live.remove(holder_address)
        addresses[broker_id] = address
        if broker_id == MASTER_ID and (is_new or known_version != registration.topics.data_version):
            yield from self._take_topics(broker, registration.topics.topic_config_table.values())
        live.data_version = (
            registration.topics.data_version
        )  # set last, so that the next registration repeats all steps if they end early
        return self._master_of(broker, broker_id)

    def unregister(self, connection: Hashable, *, name: str, broker_id: int, address: str, now_ms: int) -> None:
        """Unregisters a broker. Raises RequestRefused if the request comes from another connection."""
        self._live.refuse_strange_goodbye(connection, address=address, now_ms=now_ms)
        self._remove(name=name, broker_id=broker_id, address=address)

    def forget(self, connection: Hashable) -> None:
        """Removes the brokers whose only connection was closed."""
        for live in self._live.forget(connection):
            self._remove(name=live.name, broker_id=live.broker_id, address=live.address)

    def expire(self, now_ms: int) -> list[str]:
        """Removes the brokers that have not registered for too long, and returns their addresses."""
        silent = self._live.silent(now_ms)
        for live in silent:
            self._remove(name=live.name, broker_id=live.broker_id, address=live.address)
        return [live.address for live in silent]

    def data_version(self, address: str) -> DataVersion | None:
        """Returns the version of the broker's registered topics, or None."""
        live = self._live.get(address)
        return live.data_version if live else None

    def renew(self, address: str, now_ms: int) -> None:
        """Renews the registration of a broker whose topics have not changed."""
        if (live := self._live.get(address)) is not None:
            live.last_update_ms = now_ms

    def route(self, topic: str) -> TopicRouteData | None:
        """Returns the route of the topic, or None if no broker has the topic."""
        found = [broker for broker in self._brokers.values() if topic in broker.queues]
        if not found:
            return None
        addresses = [address for broker in found for address in broker.data.broker_addrs.values()]
        filter_servers = {
            address: live.filter_servers
            for address in addresses
            if (live := self._live.get(address)) is not None and live.filter_servers
        }
        return TopicRouteData(
            queue_datas=[broker.queues[topic] for broker in found],
            broker_datas=[broker.data for broker in found],
            filter_server_table=filter_servers,
        )

    def cluster_info(self) -> ClusterInfo:
        """Returns all brokers and their clusters."""
        brokers = {name: broker.data for name, broker in self._brokers.items()}
        return ClusterInfo(broker_addr_table=brokers, cluster_addr_table=self._clusters())

    def topics(self) -> list[str]:
        """Returns the names of all topics."""
        return _topics_of(self._brokers.values())

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Returns the names of the cluster's topics."""
        return _topics_of(broker for broker in self._brokers.values() if broker.data.cluster == cluster)

    def topics_where(self, condition: Callable[[QueueData], bool]) -> list[str]:
        """Returns the names of the topics that satisfy the condition at any broker."""
        found = (topic for broker in self._brokers.values() for topic, data in broker.queues.items() if condition(data))
        return list(dict.fromkeys(found))

    def cluster_and_broker_names(self) -> list[str]:
        """Returns the names of clusters and brokers, which are system topics."""
        return [name for cluster, brokers in self._clusters().items() for name in (cluster, *brokers)]

    def any_broker_address(self) -> str | None:
        """Returns the address of an arbitrary broker, or None."""
        return next((address for broker in self._brokers.values() for address in broker.data.broker_addrs.values()), None)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Deletes a topic from all brokers, or from those of one cluster."""
        for broker in self._brokers.values():
            if not cluster or broker.data.cluster == cluster:
                broker.queues.pop(topic, None)

    def set_writeable(self, broker_name: str, *, is_writeable: bool) -> int:
        """Sets the write permission of all topics of a broker. Returns the number of topics that the broker has."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return 0
        for data in broker.queues.values():
            data.perm = permissions.READ_AND_WRITE if is_writeable else data.perm & ~permissions.WRITE
        return len(broker.queues)

    def _remove(self, *, name: str, broker_id: int, address: str) -> None:
        self._live.remove(address)
        broker = self._brokers.get(name)
        if broker is not None and broker.data.broker_addrs.get(broker_id) == address:
            del broker.data.broker_addrs[broker_id]
            if not broker.data.broker_addrs:
                del self._brokers[name]

    def _forget_former_name(self, address: str, name: str) -> None:
        """Removes the broker's previous name if the broker now registers with another name."""
        live = self._live.get(address)
        if live is not None and live.name != name:
            logger.warning("broker at %r changed its name from %r to %r", address, live.name, name)
            self._remove(name=live.name, broker_id=live.broker_id, address=address)

    def _clusters(self) -> dict[str, list[str]]:
        clusters: dict[str, list[str]] = {}
        for name, broker in self._brokers.items():
            clusters.setdefault(broker.data.cluster, []).append(name)
        return clusters

    def _master_of(self, broker: _Broker, broker_id: int) -> Master:
        address = broker.data.broker_addrs.get(MASTER_ID)
        if broker_id == MASTER_ID or address is None:
            return Master()
        live = self._live.get(address)
        return Master(address, live.ha_address if live else None)

    def _take_topics(self, broker: _Broker, configs: Iterable[TopicConfig]) -> Generator[None, None, None]:
        name, left_out = broker.data.broker_name, 0
        entries = sum(len(other.queues) for other in self._brokers.values())
        for number, config in enumerate(list(configs)):
            if number % TOPICS_AT_ONCE == 0:
                yield
            is_new = config.topic_name not in broker.queues
            is_full = len(broker.queues) >= limits.MAX_TOPICS_OF_A_BROKER or entries >= limits.MAX_ENTRIES
            if not _is_sound(config) or (is_new and is_full):
                left_out += 1
                continue
            entries += is_new
            broker.queues[config.topic_name] = _queue_data(name, config)
        if left_out:
            logger.warning(
                "ignored %d topics of broker %r: more than %d queues, a name longer than %d, or too many topics",
                *(left_out, name, limits.MAX_QUEUES, limits.MAX_NAME_LENGTH),
            )


def _topics_of(brokers: Iterable[_Broker]) -> list[str]:
    names: dict[str, QueueData] = {}
    for broker in brokers:
        names |= broker.queues
    return list(names)


def _live_broker(connection: Hashable, registration: BrokerRegistration, now_ms: int) -> LiveBroker:
    return LiveBroker(
        name=registration.name,
        broker_id=registration.broker_id,
        address=registration.address,
        ha_address=registration.ha_address,
        connections=[connection],
        data_version=DataVersion(),
        filter_servers=registration.filter_servers,
        last_update_ms=now_ms,
    )


def _refuse_too_much(registration: BrokerRegistration) -> None:
    """Raises RequestRefused if a name is too long, or if there are too many filter servers."""
    names = registration.cluster, registration.name, registration.address, registration.ha_address, *registration.filter_servers
    if any(len(name) > limits.MAX_NAME_LENGTH for name in names):
        remark = f"name or address in a registration too long: at most {limits.MAX_NAME_LENGTH} characters"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
    if len(registration.filter_servers) > limits.MAX_FILTER_SERVERS:
        count = len(registration.filter_servers)
        remark = f"too many filter servers in a registration: {count}, at most {limits.MAX_FILTER_SERVERS}"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)


def _is_sound(config: TopicConfig) -> bool:
    counts = config.read_queue_nums, config.write_queue_nums
    return len(config.topic_name) <= limits.MAX_NAME_LENGTH and all(0 <= count <= limits.MAX_QUEUES for count in counts)


def _queue_data(broker_name: str, config: TopicConfig) -> QueueData:
    return QueueData(
        broker_name=broker_name,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_sys_flag=config.topic_sys_flag,
    )
