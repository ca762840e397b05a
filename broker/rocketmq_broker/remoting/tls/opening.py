"""Detects TLS from the first byte of a connection. Only a TLS handshake starts with 0x16 (HandshakeHandler).

After this check, a connection without TLS uses its socket directly.
"""

import asyncio
import logging
import ssl
from typing import Final, Protocol, cast

from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls.errors import TlsUnusable
from rocketmq_broker.remoting.tls.secure_transport import SecureProtocol, SecureTransport
from rocketmq_broker.remoting.tls.server_contexts import ServerContexts
from rocketmq_broker.remoting.tls.settings import TlsMode
from rocketmq_broker.remoting.tls.tunnel import TlsTunnel

HANDSHAKE: Final = 0x16

logger = logging.getLogger(__name__)


class Securable(Protocol):
    """A connection that can switch to TLS."""

    peer: str

    def secured_by(self, transport: asyncio.Transport) -> None:
        """Replaces the transport with a transport that uses TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...  # noqa: D102
    def data_received(self, data: bytes) -> None: ...  # noqa: D102
    def eof_received(self) -> bool | None: ...  # noqa: D102
    def connection_lost(self, error: Exception | None) -> None: ...  # noqa: D102
    def pause_writing(self) -> None: ...  # noqa: D102
    def resume_writing(self) -> None: ...  # noqa: D102


class Opening(asyncio.Protocol):
    """The protocol of a socket until the first bytes show whether the connection uses TLS."""

    def __init__(self, connection: Securable, contexts: ServerContexts, tasks: Tasks, complaints: Complaints) -> None:
        self._connection = connection
        self._contexts = contexts
        self._tasks = tasks
        self._complaints = complaints
        self._socket: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Passes the connected socket to the connection."""
        self._socket = cast(asyncio.Transport, transport)
        self._connection.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Starts a TLS handshake, or passes the first bytes to the connection."""
        if data[0] == HANDSHAKE:
            self._begin_handshake(data)
        elif self._contexts.mode is TlsMode.ENFORCING:
            self._refuse("no TLS", "no TLS handshake, but tls.server.mode is enforcing")
        else:
            self._socket.set_protocol(cast(asyncio.Protocol, self._connection))
            self._connection.data_received(data)

    def eof_received(self) -> bool | None:
        """Passes the end of input to the connection."""
        return self._connection.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Notifies the connection that the socket is closed, if the peer sent nothing."""
        self._connection.connection_lost(error)

    def pause_writing(self) -> None:
        """Passes the call to the connection when the peer reads too slowly."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Passes the call to the connection when the peer has read the output."""
        self._connection.resume_writing()

    def _begin_handshake(self, data: bytes) -> None:
        if self._contexts.current is not None:
            self._secure(self._contexts.current, data)
        else:
            self._socket.pause_reading()
            self._tasks.start("creation of a certificate", self._secure_when_made(data))

    async def _secure_when_made(self, data: bytes) -> None:
        try:
            context = await self._contexts.made()
        except TlsUnusable as error:
            self._refuse("no certificate", f"TLS handshake without a server certificate: {error}")
            return
        if not self._socket.is_closing():
            self._secure(context, data)
            self._socket.resume_reading()

    def _secure(self, context: ssl.SSLContext, data: bytes) -> None:
        tunnel = TlsTunnel(context, server_side=True)
        transport = SecureTransport(self._socket, tunnel)
        protocol = SecureProtocol(
            cast(asyncio.Protocol, self._connection),
            transport,
            self._socket,
            tunnel,
            peer=self._connection.peer,
            complaints=self._complaints,
            handshakes=self._contexts.handshakes,
        )
        self._connection.secured_by(transport)
        self._socket.set_protocol(protocol)
        protocol.data_received(data)

    def _refuse(self, cause: str, reason: str) -> None:
        peer = self._connection.peer
        if self._complaints.is_due(peer.rpartition(":")[0], cause, asyncio.get_running_loop().time()):
            logger.warning("closing the connection of %s: %s", peer, reason)
        self._socket.abort()
