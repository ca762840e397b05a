"""From a request's code to the method that answers it (RocketMQ's NettyRemotingAbstract.processRequestCommand)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from broker.protocol.codes import ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from broker.remoting.connection import Connection

Handler = Callable[["Connection", RemotingCommand], bytes | None]
"""Returns the whole frame of the answer, or None if it comes later or never (to a one-way request)."""

Guard = Callable[["Connection", RemotingCommand], None]
"""Raises RequestRefused, or another error that has an answer, for a request that may not come in."""

logger = logging.getLogger(__name__)


class RequestRefused(Exception):
    """A request that is answered with an error: its code and, in words, why."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark


class Dispatcher:
    """Answers requests by the handlers it is given; whatever one of them raises becomes an answer, and the connection lives.

    `refusals` says which errors are the peer's or the world's, with the code to answer them with; their text is the remark.
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
        self._is_stopped = False

    @property
    def codes(self) -> frozenset[int]:
        """The request codes it answers."""
        return frozenset(self._handlers)

    def add(self, handlers: Mapping[int, Handler]) -> None:
        """Answers these request codes as well."""
        self._handlers.update({int(code): handler for code, handler in handlers.items()})

    def tell_disconnected(self, listener: Callable[[Connection], None]) -> None:
        """Tells one more who keeps something for connections."""
        self._on_disconnected.append(listener)

    def guard_by(self, guard: Guard) -> None:
        """Lets only those requests in that the guard lets in, known codes or not (RocketMQ's RPCHook)."""
        self._guard = guard

    def stop(self) -> None:
        """Takes no more requests: the connections will be closed."""
        self._is_stopped = True

    def on_requests(self, connection: Connection, commands: list[RemotingCommand]) -> None:
        """Answers the requests of one read, in their order."""
        if self._is_stopped:
            return
        handlers, guard = self._handlers, self._guard
        for command in commands:
            handler = handlers.get(command.code, not_supported)
            try:
                if guard is not None:
                    guard(connection, command)
                frame = handler(connection, command)
            except Exception as error:
                frame = self.answer_error(command, error)
            if frame is not None and not command.is_oneway:
                connection.send(frame)

    def on_connected(self, connection: Connection) -> None:
        """A client is not known before its heartbeat."""

    def on_disconnected(self, connection: Connection) -> None:
        """Tells everybody who keeps something for the connection."""
        for forget in self._on_disconnected:
            try:
                forget(connection)
            except Exception:
                logger.exception("while forgetting the connection of %s", connection.peer)

    def answer_error(self, command: RemotingCommand, error: Exception) -> bytes:
        """The frame that tells the peer of an error."""
        if isinstance(error, RequestRefused):
            return encode_response(command, error.code, remark=error.remark)
        for kind, code in self._refusals.items():
            if isinstance(error, kind):
                return encode_response(command, code, remark=str(error))
        logger.error("request of code %d failed", command.code, exc_info=error)
        return encode_response(command, ResponseCode.SYSTEM_ERROR, remark="an internal error; the broker's log has the details")


def not_supported(connection: Connection, command: RemotingCommand) -> bytes:
    """The answer to a request that nobody here serves."""
    remark = f" request type {command.code} not supported"
    return encode_response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
