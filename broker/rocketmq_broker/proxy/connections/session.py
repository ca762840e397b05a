"""Clients' sessions. Each session has a connection to the broker inside the process (RocketMQ's GrpcChannelManager).

The broker treats this connection like any other. It checks the account of each request, registers the client by its heartbeats,
and sends check-backs.
"""

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
"""The maximum number of sessions of one connection. Some libraries use one connection for all clients of a program."""
_MAX_UNSENT_COMMANDS: Final = 1024
_MAX_UNSENT_BYTES: Final = 8 * 1024 * 1024
_TIMEOUT_MS: Final = 10_000


class Outbox:
    """A queue of encoded commands for a client. A None entry ends the client's telemetry stream."""

    def __init__(self, hold: Callable[[int], None]) -> None:
        """Creates an empty queue. `hold` is called with each change in the number of waiting bytes."""
        self._hold = hold
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unsent_bytes = 0

    def put(self, command: service.TelemetryCommand) -> bool:
        """Adds a command. Returns False if the queue is full."""
        data = command.SerializeToString()
        is_full = self._unsent.qsize() >= _MAX_UNSENT_COMMANDS or self._unsent_bytes + len(data) > _MAX_UNSENT_BYTES
        if is_full and self._unsent_bytes:
            return False
        self._count(len(data))
        self._unsent.put_nowait(data)
        return True

    def end(self) -> None:
        """Ends the telemetry stream after the waiting commands have been sent."""
        self._unsent.put_nowait(None)

    async def get(self) -> bytes | None:
        """Returns the next command, or None at the end of the telemetry stream. Call `taken` once the command has been sent."""
        data = await self._unsent.get()
        self._count(-len(data or b""))
        return data

    def taken(self) -> None:
        """Marks a command as sent."""
        self._unsent.task_done()

    async def join(self) -> None:
        """Waits until all commands have been sent."""
        await self._unsent.join()

    def _count(self, by_bytes: int) -> None:
        self._unsent_bytes += by_bytes
        self._hold(by_bytes)


class ClientSession:
    """A client's connection to the broker, its latest settings, and its telemetry."""

    def __init__(self, connection: Connection, begun_by: tuple[str, int]) -> None:
        """Creates a session. `begun_by` is the client's address on the connection of its first call."""
        self.connection = connection
        self.begun_by = begun_by
        self.settings: api.Settings | None = None
        self.is_over = False
        """Whether the client's telemetry has ended, so that no further call may begin."""
        self._outbox: Outbox | None = None
        self._calls_in_progress = 0

    @property
    def has_telemetry(self) -> bool:
        """Returns whether the client's telemetry is open."""
        return self._outbox is not None

    async def invoke(
        self,
        code: int,
        header: CommandHeader | None = None,
        body: bytes = b"",
        system_error: api.Code = api.INTERNAL_SERVER_ERROR,
    ) -> RemotingCommand:
        """Sends a request to the broker, and returns the broker's response. Raises CallRefused if the response is not SUCCESS.

        `system_error` is the status code for SYSTEM_ERROR. The caller chooses it, because the broker also responds with
        SYSTEM_ERROR to bad requests.
        """
        self._calls_in_progress += 1
        try:
            answer = await self.connection.invoke(code, header, body, timeout_ms=_TIMEOUT_MS)
        except RemotingTimeout:
            raise CallRefused(api.PROXY_TIMEOUT, f"the broker did not answer within {_TIMEOUT_MS} ms") from None
        except TooManyRequests as error:
            raise CallRefused(api.TOO_MANY_REQUESTS, str(error)) from None
        except RemotingError:
            # Whether the broker executed the request is unknown, as after a time-out.
            raise CallRefused(api.PROXY_TIMEOUT, "the client's session ended before the broker answered: try again") from None
        finally:
            self._calls_in_progress -= 1
            self._close_if_over()
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer.code, answer.remark, system_error)
        return answer

    @property
    def is_idle(self) -> bool:
        """Returns whether the session has neither telemetry nor calls in progress.

        The client's next call begins another session.
        """
        return self._outbox is None and not self._calls_in_progress

    def open_telemetry(self, hold: Callable[[int], None] = lambda by_bytes: None) -> Outbox:
        """Begins a telemetry stream, ends the previous one, and returns the new outbox.

        `hold` is called with each change in the number of waiting bytes.
        """
        self._end_outbox()
        self._outbox = Outbox(hold)
        return self._outbox

    def send(self, command: service.TelemetryCommand) -> bool:
        """Sends a command to the client. Returns False if its telemetry is closed, or its outbox is full."""
        return self._outbox is not None and self._outbox.put(command)

    def telemetry_ended(self, outbox: Outbox) -> None:
        """Ends the session if its current telemetry has ended, because check-backs can no longer reach the client.

        Calls in progress are completed first, because the client may have closed only one of its streams.
        """
        if self._outbox is outbox:
            self.end()

    def end(self) -> None:
        """Ends the session once its calls in progress have ended."""
        self._end_outbox()
        self.is_over = True
        self._close_if_over()

    def close(self) -> None:
        """Ends the client's telemetry and its connection to the broker."""
        self._end_outbox()
        self.connection.close()

    def _close_if_over(self) -> None:
        if self.is_over and not self._calls_in_progress:
            self.connection.close()

    def _end_outbox(self) -> None:
        if self._outbox is not None:
            self._outbox.end()
            self._outbox = None


class ClientSessions:
    """The sessions of all clients. A session ends when the client's telemetry ends or its heartbeats stop."""

    def __init__(self, broker: RequestHandler, memory: MemoryBudget, broker_address: tuple[str, int]) -> None:
        """Creates an empty table. `broker` handles the requests. `memory` is shared with the broker's other connections."""
        self.requests = Dispatcher(on_disconnected=[self._forget])
        """The handlers of the broker's requests to clients."""
        self._broker = broker
        self._memory = memory
        self._broker_address = broker_address
        self._network = current_network()
        self._far_ends: set[Connection] = set()
        self._sessions: dict[tuple[str, str, str], ClientSession] = {}
        self._at: dict[Connection, tuple[tuple[str, str, str], ClientSession]] = {}
        self._begun_by: dict[tuple[str, int], dict[ClientSession, None]] = {}
        """The sessions begun by each client connection, in order."""
        self._without_termination: dict[tuple[str, str, str], None] = {}
        """The clients whose telemetry ended without NotifyClientTermination, in order."""

    def __len__(self) -> int:
        return len(self._sessions)

    def of(self, caller: Caller) -> ClientSession:
        """Returns the caller's session, and begins one if needed. Raises CallRefused if there are too many."""
        session = self._sessions.get(caller.key)
        if session is None or session.is_over or not session.connection.is_open:
            session = self._begin(caller)
        return session

    def ended_without_termination(self, caller: Caller) -> bool:
        """Returns whether the caller's last session ended with its telemetry. Returns True only once for each session.

        Apache's Rust client closes its telemetry before it calls NotifyClientTermination. This call must succeed
        nevertheless, as it does with Apache's proxy, which keeps the client's settings for a while.
        """
        session = self._sessions.get(caller.key)
        if session is not None and session.is_over:
            return session.settings is not None
        if session is not None or caller.key not in self._without_termination:
            return False
        del self._without_termination[caller.key]
        return True

    def at(self, connection: Connection) -> ClientSession | None:
        """Returns the session of the connection, or None if there is none."""
        found = self._at.get(connection)
        return found[1] if found is not None else None

    async def close(self) -> None:
        """Ends all sessions."""
        closing = list(self._at)
        for _, session in list(self._at.values()):
            session.close()
        await asyncio.gather(*(connection.wait_closed() for connection in closing))

    def connection_ended(self, address: tuple[str, int]) -> None:
        """Ends the idle sessions that were begun on a client connection that has closed."""
        for session in self._begun_by.pop(address, ()):
            if session.is_idle:
                session.end()

    def _make_room(self, address: tuple[str, int]) -> None:
        """Ends the oldest idle session if there are too many sessions. Raises CallRefused if none is idle."""
        begun = self._begun_by.setdefault(address, {})
        if len(begun) >= MAX_SESSIONS_OF_CONNECTION:
            reason = f"too many clients on this connection: at most {MAX_SESSIONS_OF_CONNECTION}"
            begun.pop(_end_idle(begun, reason))
        if len(self._at) >= MAX_SESSIONS:
            sessions = (session for _, session in self._at.values())
            _end_idle(sessions, f"too many clients: at most {MAX_SESSIONS}")

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
            self._without_termination[key] = None
            if len(self._without_termination) > MAX_SESSIONS:
                del self._without_termination[next(iter(self._without_termination))]
        session.close()


def _end_idle(sessions: Iterable[ClientSession], reason: str) -> ClientSession:
    """Ends the first idle session, and returns it. Raises CallRefused if none is idle."""
    idle = next((session for session in sessions if session.is_idle and not session.is_over), None)
    if idle is None:
        raise CallRefused(api.TOO_MANY_REQUESTS, reason)
    idle.end()
    return idle
