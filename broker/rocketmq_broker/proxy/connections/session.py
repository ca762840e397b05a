"""Sessions of clients: each has a connection to the broker inside the process (RocketMQ's GrpcChannelManager).

The broker serves it as any other: it checks each request's account, registers the client with its heartbeats, and sends checks.
"""

from __future__ import annotations

import asyncio
from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.proxy.answers import CallRefused, refused
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.connections.pipe import join
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.errors import RemotingError, RemotingTimeout, TooManyRequests
from rocketmq_broker.remoting.limits import MAX_REQUEST_HEADER_LENGTH, ConnectionLimits
from rocketmq_broker.remoting.network import current_network

MOST_SESSIONS: Final = 20_000
_MOST_UNSENT_COMMANDS: Final = 1024
_TIMEOUT_MS: Final = 10_000

Outbox = asyncio.Queue[service.TelemetryCommand | None]
"""The commands for a client, in order; None ends its telemetry."""


class ClientSession:
    """A client's connection to the broker, its latest settings, and the way to it while its telemetry is open."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.settings: api.Settings | None = None
        self.is_over = False
        """Whether no further call may begin: the client's telemetry ended."""
        self._outbox: Outbox | None = None
        self._calls_under_way = 0

    @property
    def can_be_asked(self) -> bool:
        """Returns whether the client's telemetry is open."""
        return self._outbox is not None

    async def invoke(
        self,
        code: int,
        header: CommandHeader | None = None,
        body: bytes = b"",
        system_error: api.Code = api.INTERNAL_SERVER_ERROR,
    ) -> RemotingCommand:
        """Sends the broker a request. Returns its answer SUCCESS; raises CallRefused for any other.

        `system_error` is the code for SYSTEM_ERROR, which the broker answers to bad requests as well.
        """
        self._calls_under_way += 1
        try:
            answer = await self.connection.invoke(code, header, body, timeout_ms=_TIMEOUT_MS)
        except RemotingTimeout:
            raise CallRefused(api.PROXY_TIMEOUT, "the broker does not answer in time") from None
        except TooManyRequests as error:
            raise CallRefused(api.TOO_MANY_REQUESTS, str(error)) from None
        except RemotingError:
            # Whether the broker did it is unknown, as after a time-out.
            raise CallRefused(api.PROXY_TIMEOUT, "the client's session ended before the broker's answer: try again") from None
        finally:
            self._calls_under_way -= 1
            self._close_if_over()
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer.code, answer.remark, system_error)
        return answer

    def open_telemetry(self) -> Outbox:
        """Returns the outbox of a telemetry that begins. An older one ends."""
        self._end_outbox()
        self._outbox = Outbox(_MOST_UNSENT_COMMANDS)
        return self._outbox

    def tell(self, command: service.TelemetryCommand) -> bool:
        """Sends the client a command. Returns False if its telemetry is not open, or if it does not read."""
        if self._outbox is None or self._outbox.full():
            return False
        self._outbox.put_nowait(command)
        return True

    def telemetry_ended(self, outbox: Outbox) -> None:
        """Ends the session with its last telemetry: a client that cannot be asked is no longer a member of its groups.

        Calls under way get their answers first, as the client may have closed one stream and not the others.
        """
        if self._outbox is outbox:
            self._end_outbox()
            self.is_over = True
            self._close_if_over()

    def close(self) -> None:
        """Ends the client's telemetry and its connection to the broker."""
        self._end_outbox()
        self.connection.close()

    def _close_if_over(self) -> None:
        if self.is_over and not self._calls_under_way:
            self.connection.close()

    def _end_outbox(self) -> None:
        if self._outbox is not None:
            while self._outbox.full():
                self._outbox.get_nowait()
            self._outbox.put_nowait(None)
            self._outbox = None


class ClientSessions:
    """The sessions of all clients. One ends with the client's telemetry, or after its heartbeats stopped."""

    def __init__(self, broker: RequestHandler, memory: MemoryBudget, broker_address: tuple[str, int]) -> None:
        """`broker` handles the requests; `memory` is shared with its other connections."""
        self.requests = Dispatcher(on_disconnected=[self._forget])
        """The handlers of what the broker asks of clients."""
        self._broker = broker
        self._memory = memory
        self._broker_address = broker_address
        self._network = current_network()
        self._far_ends: set[Connection] = set()
        self._sessions: dict[tuple[str, str, str], ClientSession] = {}
        self._at: dict[Connection, tuple[tuple[str, str, str], ClientSession]] = {}
        self._silent: dict[tuple[str, str, str], None] = {}
        """Clients whose telemetry ended without a farewell, in this order."""

    def __len__(self) -> int:
        return len(self._sessions)

    def of(self, caller: Caller) -> ClientSession:
        """Returns the caller's session, begun if there is none. Raises CallRefused if there are too many."""
        session = self._sessions.get(caller.key)
        if session is None or session.is_over or not session.connection.is_open:
            session = self._begin(caller)
        return session

    def left_without_farewell(self, caller: Caller) -> bool:
        """Returns whether the caller's last session ended with its telemetry; from then on it counts as told.

        Apache's client for Rust closes its telemetry before its farewell. Apache's proxy keeps its settings for a while.
        """
        session = self._sessions.get(caller.key)
        if session is not None and session.is_over:
            return session.settings is not None
        if session is not None or caller.key not in self._silent:
            return False
        del self._silent[caller.key]
        return True

    def at(self, connection: Connection) -> ClientSession | None:
        """Returns the session whose connection this is."""
        found = self._at.get(connection)
        return found[1] if found is not None else None

    async def close(self) -> None:
        """Ends all sessions."""
        closing = list(self._at)
        for _, session in list(self._at.values()):
            session.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))

    def _begin(self, caller: Caller) -> ClientSession:
        if len(self._sessions) >= MOST_SESSIONS:
            raise CallRefused(api.TOO_MANY_REQUESTS, f"{MOST_SESSIONS} clients have a session: no more can come")
        limits = ConnectionLimits(max_header_length=MAX_REQUEST_HEADER_LENGTH)
        far = Connection(self._broker, open_connections=self._far_ends, limits=limits, memory=self._memory)
        near = Connection(self.requests, credentials=caller.credentials)
        session = ClientSession(near)
        self._sessions[caller.key] = session
        self._at[near] = caller.key, session
        join(near, self._network.served(far), near_address=caller.address, far_address=self._broker_address)
        return session

    def _forget(self, connection: Connection) -> None:
        key, session = self._at.pop(connection)
        if self._sessions.get(key) is session:
            del self._sessions[key]
        if session.settings is not None:
            self._silent[key] = None
            if len(self._silent) > MOST_SESSIONS:
                del self._silent[next(iter(self._silent))]
        session.close()
