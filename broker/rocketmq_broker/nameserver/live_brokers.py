"""The registered brokers and their connections (the brokerLiveTable of RocketMQ's RouteInfoManager)."""

import logging
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from rocketmq_broker.nameserver.limits import MAX_BROKERS
from rocketmq_broker.protocol.bodies.topic import DataVersion
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.dispatcher import RequestRefused

BROKER_EXPIRES_MS = 120_000
"""The time in milliseconds after which a broker that has not registered again is removed. Brokers register every 30 s."""
BROKER_HOLDS_NAME_MS = 70_000
"""The time in milliseconds after which another broker may take the name of a broker that has not registered again.

Brokers register at least every 60 s.
"""
MAX_CONNECTIONS = 8
"""The maximum number of connections tracked for one broker. A broker has one, or two while it reconnects."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveBroker:
    """One broker, with the data of its last registration."""

    name: str
    broker_id: int
    address: str
    ha_address: str
    connections: list[Hashable]
    """The open connections on which the broker registered, oldest first. The broker is removed when the last one is closed."""
    data_version: DataVersion
    filter_servers: list[str]
    last_update_ms: int


class LiveBrokers:
    """The registered brokers, keyed by address.

    Apache's name server accepts the last registration of a name. Here a broker keeps its name while it registers regularly.
    Registrations of that name with another address, and unregistrations on another connection, are refused.
    """

    def __init__(self) -> None:
        self._by_address: dict[str, LiveBroker] = {}
        self._complaints = Complaints()

    def __iter__(self) -> Iterator[LiveBroker]:
        return iter(list(self._by_address.values()))

    def get(self, address: str) -> LiveBroker | None:
        """Returns the broker at that address, or None."""
        return self._by_address.get(address)

    def put(self, registered: LiveBroker) -> None:
        """Stores a broker's registration. Raises RequestRefused if there are too many brokers."""
        before = self._by_address.get(registered.address)
        if before is not None:
            others = [other for other in before.connections if other not in registered.connections]
            registered.connections = others[-(MAX_CONNECTIONS - 1) :] + registered.connections
        elif len(self._by_address) >= MAX_BROKERS:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"too many brokers: at most {MAX_BROKERS} can be registered")
        self._by_address[registered.address] = registered

    def remove(self, address: str) -> LiveBroker | None:
        """Removes the broker at that address. Returns the removed broker, or None if there was none."""
        return self._by_address.pop(address, None)

    def refuse_stranger(self, connection: Hashable, *, name: str, address: str, holder_address: str | None, now_ms: int) -> None:
        """Raises RequestRefused if another live broker has registered the name or the address.

        `holder_address` is the address of the broker with that name and id, or None.
        """
        holder = self._by_address.get(holder_address or "")
        if holder_address != address and holder is not None and _is_held(holder, connection, now_ms):
            self._complain(name, now_ms, "refused %r to register as broker %r, which is at %r", address, name, holder.address)
            remark = f"broker {name} with id {holder.broker_id} is already registered at {holder.address}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        tenant = self._by_address.get(address)
        if tenant is not None and tenant.name != name and _is_held(tenant, connection, now_ms):
            self._complain(
                tenant.name, now_ms, "refused %r to register as broker %r: it is broker %r", address, name, tenant.name
            )
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"address {address} is already registered by broker {tenant.name}")

    def refuse_strange_goodbye(self, connection: Hashable, *, address: str, now_ms: int) -> None:
        """Raises RequestRefused if the broker at the address has registered only on other connections."""
        live = self._by_address.get(address)
        if live is not None and connection not in live.connections:
            self._complain(live.name, now_ms, "refused to unregister broker %r by another connection", live.name)
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"broker {live.name} at {address} was registered by another connection: only that connection can unregister it",
            )

    def forget(self, connection: Hashable) -> list[LiveBroker]:
        """Removes a closed connection from all brokers. Returns the brokers that have no connection left."""
        gone = []
        for live in self:
            if connection in live.connections:
                live.connections.remove(connection)
                if not live.connections:
                    gone.append(live)
        return gone

    def _complain(self, name: str, now_ms: int, text: str, *facts: str) -> None:
        """Logs a warning, at most once a minute for each broker, because any client can repeat a request."""
        if self._complaints.is_due(name, text, now_ms / 1000):
            logger.warning(text, *facts)

    def silent(self, now_ms: int) -> list[LiveBroker]:
        """Returns the brokers whose last registration has expired."""
        return [live for live in self if now_ms - live.last_update_ms > BROKER_EXPIRES_MS]


def _is_held(live: LiveBroker, connection: Hashable, now_ms: int) -> bool:
    return connection not in live.connections and now_ms - live.last_update_ms <= BROKER_HOLDS_NAME_MS
