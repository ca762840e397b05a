"""Who the broker is, as others see it (the first lines of RocketMQ's BrokerConfig)."""

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
        """HOST:PORT, as the name server tells it to clients."""
        return f"{self.host}:{self.port}"

    @property
    def store_host(self) -> bytes:
        """The address as records and message ids hold it."""
        return host_bytes(self.ip or self.host, self.port)
