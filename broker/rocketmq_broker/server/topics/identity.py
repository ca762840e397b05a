"""The broker's identity for others (the first lines of RocketMQ's BrokerConfig)."""

from dataclasses import dataclass

from rocketmq_broker.message.record import host_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """Names and address of one broker."""

    cluster: str
    name: str
    broker_id: int
    host: str
    """An address, or a name by which clients find one."""
    port: int
    ip: str = ""
    """The address behind `host`, if that is a name."""

    @property
    def address(self) -> str:
        """HOST:PORT, as name servers give it to clients."""
        return f"{self.host}:{self.port}"

    @property
    def store_host(self) -> bytes:
        """The address in the form of records and message ids."""
        return host_bytes(self.ip or self.host, self.port)
