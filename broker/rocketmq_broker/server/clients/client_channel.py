"""A client's connection as its heartbeats describe it (RocketMQ's ClientChannelInfo)."""

from dataclasses import dataclass

from rocketmq_broker.remoting.connections.connection import Connection

CHANNEL_EXPIRES_MS = 120_000
"""A channel that has sent no heartbeat for this long is closed; clients send one every 30 s."""


@dataclass(slots=True)
class ClientChannel:
    """The client at the other end of a connection."""

    connection: Connection
    client_id: str
    language: str
    version: int
    last_heartbeat_ms: int
    """By steady time, which nobody sets."""

    def is_expired(self, now_ms: int) -> bool:
        """Returns whether its heartbeats stopped."""
        return now_ms - self.last_heartbeat_ms > CHANNEL_EXPIRES_MS
