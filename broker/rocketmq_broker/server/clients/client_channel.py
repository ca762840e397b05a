"""A client's connection and its last heartbeat (RocketMQ's ClientChannelInfo)."""

from dataclasses import dataclass

from rocketmq_broker.remoting.connections.connection import Connection

CHANNEL_EXPIRES_MS = 120_000
"""A channel without a heartbeat for this long is closed. Clients send a heartbeat every 30 s."""


@dataclass(slots=True)
class ClientChannel:
    """The client at the other end of a connection."""

    connection: Connection
    client_id: str
    language: str
    version: int
    last_heartbeat_ms: int
    """In milliseconds of a monotonic clock, which changes of the system time do not affect."""

    def is_expired(self, now_ms: int) -> bool:
        """Returns True if the client has stopped sending heartbeats."""
        return now_ms - self.last_heartbeat_ms > CHANNEL_EXPIRES_MS
