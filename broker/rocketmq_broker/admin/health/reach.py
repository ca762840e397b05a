"""Checks whether clients can reach the address that a broker registers."""

import ipaddress
from collections.abc import Iterator

from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress
from rocketmq_broker.admin.health.finding import HealthFinding, wrong


def announced(subject: str, broker: BrokerAddress, *, is_remote: bool) -> Iterator[HealthFinding]:
    """Yields a problem if clients on other machines cannot use the address that the broker registers."""
    if is_remote and is_loopback(broker.address):
        what = f"It registers {broker.address}, which clients on other machines cannot reach."
        yield wrong(subject, what, "Set brokerIP1 to an address of its machine that clients can reach, and bindAddress=0.0.0.0.")


def is_loopback(address: str) -> bool:
    """Returns whether HOST:PORT is reachable only from the same machine."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
