"""Connections: the thin asyncio shell around the protocol, and the only package that opens sockets."""

from broker.remoting.client import RemotingClient
from broker.remoting.connection import Connection, RequestHandler
from broker.remoting.errors import ConnectFailed, ConnectionClosed, RemotingError, RemotingTimeout, TooManyRequests
from broker.remoting.limits import ConnectionLimits
from broker.remoting.server import RemotingServer

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
