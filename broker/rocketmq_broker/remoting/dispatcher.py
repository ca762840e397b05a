"""The dispatch of requests by code to their handlers (RocketMQ's NettyRemotingAbstract.processRequestCommand)."""

from __future__ import annotations

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
"""The whole frame of the answer; None if the answer comes later, or never (to a one-way request)."""

Steps = Generator[None, None, Answer]
"""Work too long for one turn of the event loop. It yields every millisecond or so, and returns the answer.
If the connection ends, the work is closed at its last yield. Other requests of the connection wait for its end.
"""

Handler = Callable[[Connection, RemotingCommand], Answer | Steps]

Guard = Callable[[Connection, RemotingCommand], None]
"""Raises RequestRefused, or another error that has an answer, for a request that is not admitted."""

logger = logging.getLogger(__name__)

INTERNAL_ERROR: Final = "an internal error; the broker's log has the details"
"""The remark to a request that a mistake in this program has failed."""


class RequestRefused(Exception):
    """A request that is answered with an error: its code, and the reason in words."""

    def __init__(self, code: ResponseCode | PopResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark


class Dispatcher:
    """A dispatcher of requests to handlers. An error of a handler becomes an answer, and the connection stays open.

    `refusals` maps the errors of peers and of the environment to response codes; the error's text is the remark.
    Any other error is a mistake in here: it is logged, and answered by SYSTEM_ERROR.
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
        """Adds handlers by request code: a processor's `handlers` have its method for each code."""
        self._handlers.update({int(code): handler for code, handler in handlers.items()})

    def tell_disconnected(self, listener: Callable[[Connection], None]) -> None:
        """Adds a listener to the ends of connections."""
        self._on_disconnected.append(listener)

    def guard_by(self, guard: Guard) -> None:
        """Admits only requests that the guard admits, known codes or not (RocketMQ's RPCHook)."""
        self._guard = guard

    def stop(self) -> None:
        """Drops all further requests: the connections will be closed."""
        self._is_stopped = True

    def on_requests(self, connection: Connection, commands: list[RemotingCommand]) -> None:
        """Answers the requests of one read, in order. Postpones those that the turn of the event loop has no room for."""
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
        """Continues the work of the connection's request, if there is any. Returns whether none is left."""
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
        """Does nothing: a client is unknown before its heartbeat."""

    def on_disconnected(self, connection: Connection) -> None:
        """Closes the connection's work, and tells all listeners."""
        if connection in self._under_way:
            self._under_way.pop(connection)[1].close()
        for forget in self._on_disconnected:
            try:
                forget(connection)
            except Exception:
                logger.exception("while forgetting the connection of %s", connection.peer)

    def answer_error(self, command: RemotingCommand, error: Exception) -> bytes:
        """Returns the frame that answers a request with an error."""
        if isinstance(error, RequestRefused):
            return encode_response(command, error.code, remark=error.remark)
        for kind, code in self._refusals.items():
            if isinstance(error, kind):
                return encode_response(command, code, remark=str(error))
        logger.error("request of code %d failed", command.code, exc_info=error)
        return encode_response(command, ResponseCode.SYSTEM_ERROR, remark=INTERNAL_ERROR)


def guard_of(hook: RpcHook) -> Guard:
    """Returns a guard that passes peers' requests to the hook. A stopped request is refused; a one-way one is dropped."""

    def guard(connection: Connection, request: RemotingCommand) -> None:
        try:
            ask_hook(hook, connection.peer, request)
        except StoppedByHook as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from error

    return guard


def not_supported(connection: Connection, command: RemotingCommand) -> bytes:
    """Returns the answer to a request without a handler."""
    remark = f" request type {command.code} not supported"
    return encode_response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
