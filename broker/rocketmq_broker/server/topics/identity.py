"""Defines the broker's names and address (part of RocketMQ's BrokerConfig)."""

from dataclasses import dataclass

from rocketmq_broker.message.record import host_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """The names and the address of one broker."""

    cluster: str
    name: str
    broker_id: int
    host: str
    """An IP address, or a host name that clients can resolve."""
    port: int
    ip: str = ""
    """The IP address to which `host` resolves, if `host` is a name."""

    @property
    def address(self) -> str:
        """Returns the address as HOST:PORT, in the form that name servers return to clients."""
        return f"{self.host}:{self.port}"

    @property
    def store_host(self) -> bytes:
        """Returns the address in the encoding of records and message ids."""
        return host_bytes(self.ip or self.host, self.port)
