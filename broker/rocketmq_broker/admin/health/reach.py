"""From where an address can be reached, and what a broker announces."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from rocketmq_broker.admin.asking.brokers import BrokerAddress
from rocketmq_broker.admin.health.finding import Finding, wrong


def announced(subject: str, broker: BrokerAddress, *, is_elsewhere: bool) -> Iterator[Finding]:
    """Whether clients on other machines can use the address that the broker registers."""
    if is_elsewhere and is_loopback(broker.address):
        what = f"It announces {broker.address}, which no client on another machine can reach."
        yield wrong(subject, what, "Set brokerIP1 to the address by which clients know its machine, and bindAddress=0.0.0.0.")


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT is reached from the same machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
