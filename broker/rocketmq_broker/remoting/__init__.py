"""Connections, as a thin asyncio layer around the protocol. This is the only package that opens sockets."""

from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.errors import ConnectFailed, ConnectionClosed, RemotingError, RemotingTimeout, TooManyRequests
from rocketmq_broker.remoting.limits import ConnectionLimits
from rocketmq_broker.remoting.server import RemotingServer

__all__ = [
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionLimits",
    "RemotingClient",
    "RemotingError",
    "RemotingServer",
    "RemotingTimeout",
    "RequestHandler",
    "TooManyRequests",
]
