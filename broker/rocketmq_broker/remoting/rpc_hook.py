"""A hook that is called with requests and responses, and can stop them (RocketMQ's RPCHook)."""

import asyncio
from functools import partial
from typing import Protocol

import msgspec

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.connections.own_requests import OwnRequests
from rocketmq_broker.remoting.errors import StoppedByHook


class RpcHook(Protocol):
    """The interface of a hook. Its methods are called on the event loop and must not block for long."""

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Called before a request is sent to `address`, and for each request received from it, such as a check-back.

        If the method raises an exception, the request is not sent, or not handled.
        """

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Called with the response to a request that this client sent.

        If the method raises an exception, the caller gets StoppedByHook instead.
        """


class HookedRequests(OwnRequests):
    """Encodes requests like OwnRequests. Passes the requests and their responses to a hook."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        serialize_type: SerializeType,
        credentials: SessionCredentials | None,
        hook: RpcHook,
    ) -> None:
        super().__init__(loop, serialize_type, credentials)
        self._hook = hook

    def new(
        self, code: int, header: CommandHeader | None, body: bytes, timeout_ms: int
    ) -> tuple[bytes, asyncio.Future[RemotingCommand]]:
        """Returns the frame and the future, like `OwnRequests.new`. Raises StoppedByHook if the hook stops the request.

        The future raises StoppedByHook if the hook stops the response.
        """
        request = _command(code, header, body)
        ask_hook(self._hook, self.peer, request)
        frame, answer = super().new(code, header, body, timeout_ms)
        seen: asyncio.Future[RemotingCommand] = self._loop.create_future()
        answer.add_done_callback(partial(self._pass_on, request, seen))
        return frame, seen

    def new_oneway(self, code: int, header: CommandHeader | None, body: bytes, remark: str | None = None) -> bytes:
        """Returns the frame of a one-way request. Raises StoppedByHook."""
        ask_hook(self._hook, self.peer, _command(code, header, body))
        return super().new_oneway(code, header, body, remark)

    def _pass_on(
        self, request: RemotingCommand, seen: asyncio.Future[RemotingCommand], answer: asyncio.Future[RemotingCommand]
    ) -> None:
        error = answer.exception()
        if seen.done():
            return
        if error is not None:
            seen.set_exception(error)
            return
        try:
            self._hook.do_after_response(self.peer, request, answer.result())
        except Exception as reason:
            seen.set_exception(StoppedByHook(f"the RPC hook stopped the answer of {self.peer}: {_in_words(reason)}"))
        else:
            seen.set_result(answer.result())


def ask_hook(hook: RpcHook, address: str, request: RemotingCommand) -> None:
    """Passes a request to the hook. Raises StoppedByHook if the hook raises any exception."""
    try:
        hook.do_before_request(address, request)
    except Exception as reason:
        raise StoppedByHook(f"the RPC hook stopped the request: {_in_words(reason)}") from reason


def _command(code: int, header: CommandHeader | None, body: bytes) -> RemotingCommand:
    """Returns the request to pass to a hook. The request has no opaque yet."""
    fields = msgspec.Raw(header.encode_json() if header is not None else b"")
    return RemotingCommand(code=code, opaque=0, json_fields=fields, body=body)


def _in_words(reason: Exception) -> str:
    return str(reason) or type(reason).__name__
