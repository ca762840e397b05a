"""Sessions of clients: each has a connection to the broker inside the process (RocketMQ's GrpcChannelManager).

The broker serves it as any other: it checks each request's account, registers the client with its heartbeats, and sends checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
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

MAX_SESSIONS: Final = 20_000
MAX_SESSIONS_OF_CONNECTION: Final = 256
"""A program has a connection for all its clients, some libraries one for each of them."""
_MAX_UNSENT_COMMANDS: Final = 1024
_MAX_UNSENT_BYTES: Final = 8 * 1024 * 1024
_TIMEOUT_MS: Final = 10_000


class Outbox:
    """The encoded commands for a client, in order; None ends its telemetry."""

    def __init__(self, hold: Callable[[int], None]) -> None:
        """`hold` counts the bytes that wait."""
        self._hold = hold
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unsent_bytes = 0

    def put(self, command: service.TelemetryCommand) -> bool:
        """Adds a command. Returns False if too much waits already."""
        data = command.SerializeToString()
        is_full = self._unsent.qsize() >= _MAX_UNSENT_COMMANDS or self._unsent_bytes + len(data) > _MAX_UNSENT_BYTES
        if is_full and self._unsent_bytes:
            return False
        self._count(len(data))
        self._unsent.put_nowait(data)
        return True

    def end(self) -> None:
        """Adds the end."""
        self._unsent.put_nowait(None)

    async def get(self) -> bytes | None:
        """Returns the next command. Call `taken` after it was sent."""
        data = await self._unsent.get()
        self._count(-len(data or b""))
        return data

    def taken(self) -> None:
        """Takes note that a command was sent."""
        self._unsent.task_done()

    async def join(self) -> None:
        """Returns when all commands were sent."""
        await self._unsent.join()

    def _count(self, by_bytes: int) -> None:
        self._unsent_bytes += by_bytes
        self._hold(by_bytes)


class ClientSession:
    """A client's connection to the broker, its latest settings, and the way to it while its telemetry is open."""

    def __init__(self, connection: Connection, begun_by: tuple[str, int]) -> None:
        """`begun_by` is the address of the client's connection that the first call came by."""
        self.connection = connection
        self.begun_by = begun_by
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

    @property
    def is_quiet(self) -> bool:
        """Returns whether neither telemetry nor a call needs the session. The client's next call begins another."""
        return self._outbox is None and not self._calls_under_way

    def open_telemetry(self, hold: Callable[[int], None] = lambda by_bytes: None) -> Outbox:
        """Returns the outbox of a telemetry that begins. An older one ends. `hold` counts the bytes that wait in it."""
        self._end_outbox()
        self._outbox = Outbox(hold)
        return self._outbox

    def tell(self, command: service.TelemetryCommand) -> bool:
        """Sends the client a command. Returns False if its telemetry is not open, or if it does not read."""
        return self._outbox is not None and self._outbox.put(command)

    def telemetry_ended(self, outbox: Outbox) -> None:
        """Ends the session with its last telemetry: a client that cannot be asked is no longer a member of its groups.

        Calls under way get their answers first, as the client may have closed one stream and not the others.
        """
        if self._outbox is outbox:
            self.end()

    def end(self) -> None:
        """Ends the session after its calls under way."""
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
            self._outbox.end()
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
        self._begun_by: dict[tuple[str, int], dict[ClientSession, None]] = {}
        """The sessions that began by each connection of a client, in their order."""
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

    def connection_ended(self, address: tuple[str, int]) -> None:
        """Ends the quiet sessions that began by a client's connection: the connection is closed."""
        for session in self._begun_by.pop(address, ()):
            if session.is_quiet:
                session.end()

    def _make_room(self, address: tuple[str, int]) -> None:
        """Ends a quiet session if there are too many, the oldest. Raises CallRefused if there is none."""
        begun = self._begun_by.setdefault(address, {})
        if len(begun) >= MAX_SESSIONS_OF_CONNECTION:
            reason = f"{MAX_SESSIONS_OF_CONNECTION} clients of this connection have a session, the most that may"
            begun.pop(_end_a_quiet_one(begun, reason))
        if len(self._at) >= MAX_SESSIONS:
            sessions = (session for _, session in self._at.values())
            _end_a_quiet_one(sessions, f"{MAX_SESSIONS} clients have a session: no more can come")

    def _begin(self, caller: Caller) -> ClientSession:
        self._make_room(caller.address)
        limits = ConnectionLimits(max_header_length=MAX_REQUEST_HEADER_LENGTH)
        far = Connection(self._broker, open_connections=self._far_ends, limits=limits, memory=self._memory)
        near = Connection(self.requests, credentials=caller.credentials)
        session = ClientSession(near, caller.address)
        self._sessions[caller.key] = session
        self._begun_by.setdefault(caller.address, {})[session] = None
        self._at[near] = caller.key, session
        join(near, self._network.served(far), near_address=caller.address, far_address=self._broker_address)
        return session

    def _forget(self, connection: Connection) -> None:
        key, session = self._at.pop(connection)
        if (begun := self._begun_by.get(session.begun_by)) is not None:
            begun.pop(session, None)
            if not begun:
                del self._begun_by[session.begun_by]
        if self._sessions.get(key) is session:
            del self._sessions[key]
        if session.settings is not None:
            self._silent[key] = None
            if len(self._silent) > MAX_SESSIONS:
                del self._silent[next(iter(self._silent))]
        session.close()


def _end_a_quiet_one(sessions: Iterable[ClientSession], reason: str) -> ClientSession:
    """Ends a session that neither telemetry nor a call needs, and returns it. Raises CallRefused if there is none."""
    quiet = next((session for session in sessions if session.is_quiet and not session.is_over), None)
    if quiet is None:
        raise CallRefused(api.TOO_MANY_REQUESTS, reason)
    quiet.end()
    return quiet
