"""The reachability of an address, and a broker's announced address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from rocketmq_broker.admin.asking.brokers import BrokerAddress
from rocketmq_broker.admin.health.finding import HealthFinding, wrong


def announced(subject: str, broker: BrokerAddress, *, is_elsewhere: bool) -> Iterator[HealthFinding]:
    """Finds out whether clients on other machines can use the address that the broker registers."""
    if is_elsewhere and is_loopback(broker.address):
        what = f"It announces {broker.address}, which no client on another machine can reach."
        yield wrong(subject, what, "Set brokerIP1 to the address by which clients know its machine, and bindAddress=0.0.0.0.")


def is_loopback(address: str) -> bool:
    """Returns whether HOST:PORT is reachable only from the same machine."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
