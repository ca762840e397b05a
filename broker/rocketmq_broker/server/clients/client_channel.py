"""A client's connection and its last heartbeat (RocketMQ's ClientChannelInfo)."""

from dataclasses import dataclass

from rocketmq_broker.remoting.connections.connection import Connection

CHANNEL_EXPIRES_MS = 120_000
"""The time, in milliseconds, after which a channel without a heartbeat is closed. Clients send a heartbeat every 30 s."""


@dataclass(slots=True)
class ClientChannel:
    """The client at the other end of a connection."""

    connection: Connection
    client_id: str
    language: str
    version: int
    last_heartbeat_ms: int
    """The time of the last heartbeat, in milliseconds of a monotonic clock. Changes of the system time do not affect it."""

    def is_expired(self, now_ms: int) -> bool:
        """Returns True if the client has stopped sending heartbeats."""
        return now_ms - self.last_heartbeat_ms > CHANNEL_EXPIRES_MS
