"""The registered brokers, and the connections that may speak for them (the brokerLiveTable of RocketMQ's RouteInfoManager)."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from rocketmq_broker.nameserver.limits import MAX_BROKERS
from rocketmq_broker.protocol.bodies import DataVersion
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.dispatcher import RequestRefused

BROKER_EXPIRES_MS = 120_000
"""Time without a registration after which a broker is removed; brokers register every 30 s."""
BROKER_HOLDS_NAME_MS = 70_000
"""Time without a registration after which another broker may take the name; brokers register every 60 s at least."""
MAX_CONNECTIONS = 8
"""Connections that are known for one broker; a broker has one, and two while it reconnects."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveBroker:
    """One broker, with the data of its last registration."""

    name: str
    broker_id: int
    address: str
    ha_address: str
    connections: list[Hashable]
    """The open connections by which it registered, the oldest first. The broker is removed with the last of them."""
    data_version: DataVersion
    filter_servers: list[str]
    last_update_ms: int


class LiveBrokers:
    """The brokers by address.

    Apache's name server believes the last registration of a name. Here a broker keeps its name as long as it registers. A
    registration of that name with another address, or its unregistration by another connection, is refused.
    """

    def __init__(self) -> None:
        self._by_address: dict[str, LiveBroker] = {}
        self._complaints = Complaints()

    def __iter__(self) -> Iterator[LiveBroker]:
        return iter(list(self._by_address.values()))

    def get(self, address: str) -> LiveBroker | None:
        """Returns the broker at that address; None if there is none."""
        return self._by_address.get(address)

    def put(self, registered: LiveBroker) -> None:
        """Stores a broker's registration, made by its one connection. Raises RequestRefused if there are too many brokers."""
        before = self._by_address.get(registered.address)
        if before is not None:
            others = [other for other in before.connections if other not in registered.connections]
            registered.connections = others[-(MAX_CONNECTIONS - 1) :] + registered.connections
        elif len(self._by_address) >= MAX_BROKERS:
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"{MAX_BROKERS} brokers are registered, the most that may be")
        self._by_address[registered.address] = registered

    def remove(self, address: str) -> LiveBroker | None:
        """Removes the broker and returns it."""
        return self._by_address.pop(address, None)

    def refuse_stranger(self, connection: Hashable, *, name: str, address: str, holder_address: str | None, now_ms: int) -> None:
        """Raises RequestRefused if the name or the address belongs to another live broker.

        `holder_address` is the address of the broker with that name and id, if there is one.
        """
        holder = self._by_address.get(holder_address or "")
        if holder_address != address and holder is not None and _is_held(holder, connection, now_ms):
            self._complain(name, now_ms, "%r registers as broker %r, which is at %r: refused", address, name, holder.address)
            remark = f"the broker {name} with id {holder.broker_id} is at {holder.address} and registers from there"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        tenant = self._by_address.get(address)
        if tenant is not None and tenant.name != name and _is_held(tenant, connection, now_ms):
            self._complain(
                tenant.name, now_ms, "%r registers as broker %r, and is broker %r: refused", address, name, tenant.name
            )
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the address {address} is that of the broker {tenant.name}")

    def refuse_strange_goodbye(self, connection: Hashable, *, address: str, now_ms: int) -> None:
        """Raises RequestRefused if the broker at the address registered by other connections only."""
        live = self._by_address.get(address)
        if live is not None and connection not in live.connections:
            self._complain(live.name, now_ms, "somebody else than broker %r says that it leaves: refused", live.name)
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"the broker {live.name} at {address} registered by another connection"
            )

    def forget(self, connection: Hashable) -> list[LiveBroker]:
        """Drops a closed connection, and returns the brokers that have no other."""
        gone = []
        for live in self:
            if connection in live.connections:
                live.connections.remove(connection)
                if not live.connections:
                    gone.append(live)
        return gone

    def _complain(self, name: str, now_ms: int, text: str, *facts: str) -> None:
        """Logs once a minute for each broker concerned: a stranger may repeat a request at will."""
        if self._complaints.is_due(name, text, now_ms / 1000):
            logger.warning(text, *facts)

    def silent(self, now_ms: int) -> list[LiveBroker]:
        """Returns the brokers that have not registered for too long."""
        return [live for live in self if now_ms - live.last_update_ms > BROKER_EXPIRES_MS]


def _is_held(live: LiveBroker, connection: Hashable, now_ms: int) -> bool:
    return connection not in live.connections and now_ms - live.last_update_ms <= BROKER_HOLDS_NAME_MS
