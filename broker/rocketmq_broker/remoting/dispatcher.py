"""Dispatches requests to handlers by request code (RocketMQ's NettyRemotingAbstract.processRequestCommand)."""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final

from rocketmq_broker.protocol.codes import PopResponseCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.errors import StoppedByHook
from rocketmq_broker.remoting.rpc_hook import RpcHook, ask_hook

Answer = bytes | None
"""The frame of the answer, or None if the answer is sent later or the request is one-way."""

Steps = Generator[None, None, Answer]
"""Work that is too long for one turn of the event loop. It yields about every millisecond, and returns the answer.
If the connection ends, the generator is closed. Other requests of the connection wait until the work is done.
"""

Handler = Callable[[Connection, RemotingCommand], Answer | Steps]

Guard = Callable[[Connection, RemotingCommand], None]
"""A function that raises RequestRefused, or another error that is sent as an answer, if a request is not allowed."""

logger = logging.getLogger(__name__)

INTERNAL_ERROR: Final = "internal error: see the broker's log for details"
"""The remark of the answer to a request that failed because of a bug."""


class RequestRefused(Exception):
    """Raised to refuse a request. The response has this error's code and remark."""

    def __init__(self, code: ResponseCode | PopResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark


class Dispatcher:
    """Passes requests to handlers. If a handler raises an error, the response contains the error, and the connection stays open.

    `refusals` maps expected errors to response codes. The remark is the text of the error. Any other error is a bug. It is
    logged, and the response is SYSTEM_ERROR.
    """

    def __init__(
        self,
        *,
        refusals: Mapping[type[Exception], ResponseCode] | None = None,
        on_disconnected: Iterable[Callable[[Connection], None]] = (),
    ) -> None:
        self._handlers: dict[int, Handler] = {}
        self._refusals: dict[type[Exception], ResponseCode] = {ProtocolError: ResponseCode.SYSTEM_ERROR, **(refusals or {})}
        self._on_disconnected = list(on_disconnected)
        self._guard: Guard | None = None
        self._under_way: dict[Connection, tuple[RemotingCommand, Steps]] = {}
        self._is_stopped = False

    @property
    def codes(self) -> frozenset[int]:
        """Returns the request codes that have a handler."""
        return frozenset(self._handlers)

    def add(self, handlers: Mapping[int, Handler]) -> None:
        """Adds handlers, keyed by request code, such as the `handlers` of a processor."""
        self._handlers.update({int(code): handler for code, handler in handlers.items()})

    def add_disconnect_listener(self, listener: Callable[[Connection], None]) -> None:
        """Adds a listener that is called when a connection has ended."""
        self._on_disconnected.append(listener)

    def guard_by(self, guard: Guard) -> None:
        """Adds a guard, which is called before each request is handled (RocketMQ's RPCHook).

        This includes requests with unknown codes.
        """
        self._guard = guard

    def stop(self) -> None:
        """Ignores all further requests, because the connections will be closed."""
        self._is_stopped = True

    def on_requests(self, connection: Connection, commands: list[RemotingCommand]) -> None:
        """Handles the requests of one read, in order.

        If the time limit of the turn is reached, postpones the remaining requests.
        """
        if self._is_stopped:
            return
        if self._under_way and not self._is_done(connection):
            connection.postpone(commands)
            return
        handlers, guard = self._handlers, self._guard
        for position, command in enumerate(commands):
            if connection.must_rest:
                connection.postpone(commands[position:])
                return
            handler = handlers.get(command.code, not_supported)
            try:
                if guard is not None:
                    guard(connection, command)
                answer = handler(connection, command)
            except Exception as error:
                answer = self.answer_error(command, error)
            if answer is None:
                continue
            if isinstance(answer, bytes):
                if not command.is_oneway:
                    connection.send(answer)
                continue
            self._under_way[connection] = command, answer
            if not self._is_done(connection):
                connection.postpone(commands[position + 1 :])
                return

    def _is_done(self, connection: Connection) -> bool:
        """Continues the connection's unfinished work, if there is any. Returns True if no work is left."""
        if connection not in self._under_way:
            return True
        command, steps = self._under_way[connection]
        try:
            while not connection.must_rest:
                next(steps)
            return False
        except StopIteration as ended:
            answer: Answer = ended.value
        except Exception as error:
            answer = self.answer_error(command, error)
        del self._under_way[connection]
        if answer is not None and not command.is_oneway:
            connection.send(answer)
        return True

    def on_connected(self, connection: Connection) -> None:
        """Does nothing. A client is registered by its heartbeat."""

    def on_disconnected(self, connection: Connection) -> None:
        """Closes the connection's unfinished work, and calls all listeners."""
        if connection in self._under_way:
            self._under_way.pop(connection)[1].close()
        for forget in self._on_disconnected:
            try:
                forget(connection)
            except Exception:
                logger.exception("a listener failed when the connection of %s was closed", connection.peer)

    def answer_error(self, command: RemotingCommand, error: Exception) -> bytes:
        """Returns the frame of an error response to a request."""
        if isinstance(error, RequestRefused):
            return encode_response(command, error.code, remark=error.remark)
        for kind, code in self._refusals.items():
            if isinstance(error, kind):
                return encode_response(command, code, remark=str(error))
        logger.error("request with code %d failed", command.code, exc_info=error)
        return encode_response(command, ResponseCode.SYSTEM_ERROR, remark=INTERNAL_ERROR)


def guard_of(hook: RpcHook) -> Guard:
    """Returns a guard that passes requests to the hook. A stopped request is refused, or ignored if it is one-way."""

    def guard(connection: Connection, request: RemotingCommand) -> None:
        try:
            ask_hook(hook, connection.peer, request)
        except StoppedByHook as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from error

    return guard


def not_supported(connection: Connection, command: RemotingCommand) -> bytes:
    """Returns the response to a request that has no handler."""
    remark = f" request type {command.code} not supported"
    return encode_response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
