"""A client with one connection per address, opened on demand (RocketMQ's NettyRemotingClient)."""

import asyncio
import os
from typing import Final

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.dispatcher import not_supported
from rocketmq_broker.remoting.errors import CertificateRefused, ConnectFailed, ConnectionClosed, HandshakeFailed, RemotingTimeout
from rocketmq_broker.remoting.limits import ConnectionLimits
from rocketmq_broker.remoting.network import current_network
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls, TlsError, client_context, is_about_certificate, words_of

_HIGHEST_PORT: Final = 65_535
_NO_HANDSHAKE: Final = (
    "the server ended the TLS handshake: check that it uses TLS (tls.server.mode), or disable TLS here "
    "(tls=, ROCKETMQ_TLS_ENABLE, tls.enable)"
)


class RefusingHandler:
    """A handler that responds to every request with REQUEST_CODE_NOT_SUPPORTED."""

    def on_connected(self, connection: Connection) -> None:
        """Does nothing."""

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """Refuses the requests."""
        for request in requests:
            if not request.is_oneway:
                connection.send(not_supported(connection, request))

    def on_disconnected(self, connection: Connection) -> None:
        """Does nothing."""


class RemotingClient:
    """Sends requests to addresses such as "127.0.0.1:10911". After a connection has failed, the next request opens a new one."""

    def __init__(
        self,
        handler: RequestHandler | None = None,
        *,
        connect_timeout_ms: int = 3000,
        serialize_type: SerializeType = SerializeType.JSON,
        limits: ConnectionLimits | None = None,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | None = None,
        rpc_hook: RpcHook | None = None,
    ) -> None:
        """Creates a client. `handler` handles the servers' requests. If it is None, these requests are refused.

        `credentials` sign every request. `tls` enables TLS for every connection. `rpc_hook` is called with each request and
        its response. Raises TlsUnusable if the TLS settings are invalid.
        """
        self.connections: set[Connection] = set()
        """The open connections."""
        self._handler = handler or RefusingHandler()
        self._connect_timeout_ms = connect_timeout_ms
        self._serialize_type = serialize_type
        self._limits = limits or ConnectionLimits()
        self._complaints = Complaints()
        self._credentials = credentials
        self._rpc_hook = rpc_hook
        self._tls = client_context(tls) if tls is not None else None
        self._by_address: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Task[Connection]] = {}
        self._network = current_network()
        self._is_closed = False

    async def invoke(
        self, address: str, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int = 3000
    ) -> RemotingCommand:
        """Sends a request, and returns the response. The timeout includes the time to connect.

        Raises ConnectFailed, RemotingTimeout, ConnectionClosed, TooManyRequests or StoppedByHook.
        """
        connection = self._open(address)
        if connection is None:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            connection = await self.connect(address, timeout_ms=timeout_ms)
            timeout_ms -= int((loop.time() - began_s) * 1000)
            if timeout_ms <= 0:
                raise RemotingTimeout(f"timeout expired while connecting to {address}")
        return await connection.invoke(code, header, body, timeout_ms=timeout_ms)

    async def invoke_oneway(
        self,
        address: str,
        code: int,
        header: CommandHeader | None = None,
        body: bytes = b"",
        *,
        timeout_ms: int = 3000,
        remark: str | None = None,
    ) -> None:
        """Sends a one-way request. Raises ConnectFailed, ConnectionClosed or StoppedByHook."""
        connection = self._open(address) or await self.connect(address, timeout_ms=timeout_ms)
        connection.invoke_oneway(code, header, body, remark=remark)

    async def connect(self, address: str, *, timeout_ms: int | None = None) -> Connection:
        """Returns the open connection to the address, or opens one. Raises ConnectFailed."""
        if connection := self._open(address):
            return connection
        if self._is_closed:
            raise ConnectionClosed("the client is closed")
        connecting = self._connecting.get(address)
        if connecting is None:
            connecting = asyncio.create_task(self._connect(address), name=f"connect {address}")
            connecting.add_done_callback(_retrieve_exception)
            self._connecting[address] = connecting
        timeout_ms = self._connect_timeout_ms if timeout_ms is None else timeout_ms
        try:
            # Other tasks may wait for the same connection, so a timeout here must not cancel it.
            async with asyncio.timeout(timeout_ms / 1000):
                return await asyncio.shield(connecting)
        except TimeoutError:
            raise ConnectFailed(f"no connection to {address} within {timeout_ms} ms") from None

    def is_connected(self, address: str) -> bool:
        """Returns True if a connection to the address is open."""
        return self._open(address) is not None

    async def close(self) -> None:
        """Sends all unsent data, and closes all connections."""
        self._is_closed = True
        connecting = list(self._connecting.values())
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        closing = sorted(self.connections, key=lambda connection: connection.peer)  # sorted, so that simulations can be replayed
        for connection in closing:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))
        self._by_address.clear()

    def _open(self, address: str) -> Connection | None:
        connection = self._by_address.get(address)
        return connection if connection is not None and connection.is_open else None

    async def _connect(self, address: str) -> Connection:
        try:
            host, port = split_address(address)
            async with asyncio.timeout(self._connect_timeout_ms / 1000):
                connection = await self._network.connect(self._new_connection, host, port, self._tls)
        except TimeoutError:
            raise ConnectFailed(f"no connection to {address} within {self._connect_timeout_ms} ms") from None
        except TlsError as error:
            failed = CertificateRefused if is_about_certificate(error) else HandshakeFailed
            raise failed(f"no TLS connection to {address}: {words_of(error)}") from None
        except (OSError, ValueError) as error:
            if self._tls is not None and isinstance(error, ConnectionResetError | ConnectionAbortedError):
                raise HandshakeFailed(f"no connection to {address}: {_NO_HANDSHAKE}") from None
            raise ConnectFailed(f"no connection to {address}: {_reason(error)}") from None
        finally:
            self._connecting.pop(address, None)
        self._by_address[address] = connection
        return connection

    def _new_connection(self) -> Connection:
        return Connection(
            self._handler,
            open_connections=self.connections,
            limits=self._limits,
            complaints=self._complaints,
            serialize_type=self._serialize_type,
            credentials=self._credentials,
            rpc_hook=self._rpc_hook,
        )


def split_address(address: str) -> tuple[str, int]:
    """Splits "127.0.0.1:10911" or "[::1]:10911" into host and port. Raises ValueError."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise ValueError(f"address must be HOST:PORT, not {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _reason(error: OSError | ValueError) -> str:
    """Returns the system's error message. asyncio's message would repeat the address and add an error number."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno) if error.errno > 0 else error.strerror or str(error)
    return str(error)


def _retrieve_exception(task: asyncio.Task[Connection]) -> None:
    """Retrieves the error of a connection attempt that no task awaits, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
