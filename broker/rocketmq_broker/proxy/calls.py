"""The methods of the gRPC API, which take and return encoded messages (RocketMQ's GrpcMessagingApplication).

Requests are decoded here, so that a malformed request gets an error status and is not logged.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from google.protobuf.message import DecodeError, Message

from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.connections.call import Call, CallEnded, GrpcStatus, Method
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.remoting.dispatcher import INTERNAL_ERROR

logger = logging.getLogger(__name__)

SERVICE: Final = "apache.rocketmq.v2.MessagingService"
METRICS: Final = "opentelemetry.proto.collector.metrics.v1.MetricsService"
MAX_REQUEST_BYTES: Final = 1024 * 1024
"""The maximum size in bytes of a client's settings, and of a request without messages.

The longest such request acknowledges 1024 messages.
"""
_MAX_METRICS_BYTES: Final = 4 * 1024 * 1024

CallerOf = Callable[[Call], Caller]
"""A function that returns the caller of a call. Raises CallRefused if the caller cannot be identified."""
Unary = Callable[[Caller, Any], Awaitable[Any]]
RefuseEncoded = Callable[[bytes], None]
"""A function that raises CallRefused for an encoded request that takes too long to decode, and DecodeError for damaged bytes."""
Hold = Callable[[int], None]
"""A function that adds a number of bytes to a call's memory use. A negative number releases bytes."""
Streaming = Callable[[Caller, Any, Hold], AsyncIterator[Any]]
"""A function that returns an asynchronous generator of a call's answers."""
TelemetryServed = Callable[[Caller, Call], Awaitable[None]]


class Calls:
    """The methods, keyed by name. An error in a method becomes the status of its call."""

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of
        self._methods: dict[str, Method] = {}

    def unary(
        self, name: str, serve: Unary, max_bytes: int = MAX_REQUEST_BYTES, refuse_encoded: RefuseEncoded = lambda data: None
    ) -> None:
        """Adds a method with one response, which `serve` may return already encoded.

        `max_bytes` is the maximum size of a request. `refuse_encoded` may refuse a request before it is decoded.
        """
        request_type, response_type = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")

        async def answer(call: Call) -> bytes:
            try:
                data = await _request(call)
                refuse_encoded(data)
                request = request_type.FromString(data)
                response = await serve(self._caller_of(call), request)
            except CallEnded:
                raise
            except Exception as error:
                response = response_type(status=_status(name, error))
            return response if isinstance(response, bytes) else _encoded(response)

        async def handle(call: Call) -> None:
            # Only the encoded answer is kept in memory until the client reads it.
            await call.write(await answer(call))

        self._methods[name] = Method(handle, max_bytes)

    def streaming(self, name: str, serve: Streaming) -> None:
        """Adds a method that responds with a stream of messages."""
        request_type, response_type = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")

        async def handle(call: Call) -> None:
            data = await _request(call)
            try:
                # The generator is closed as soon as the client ends the call, to release messages that were not delivered.
                served = cast("AsyncGenerator[Any]", serve(self._caller_of(call), request_type.FromString(data), call.hold))
                async with aclosing(served) as responses:
                    async for response in responses:
                        await call.write(_encoded(response))
            except CallEnded:
                raise
            except Exception as error:
                await call.write(_encoded(response_type(status=_status(name, error))))

        self._methods[name] = Method(handle, MAX_REQUEST_BYTES, has_one_answer=False)

    def telemetry(self, serve: TelemetryServed) -> None:
        """Adds the method Telemetry, in which both sides stream commands.

        A refusal ends the call with a gRPC status, as in Apache's proxy.
        """

        async def handle(call: Call) -> None:
            try:
                await serve(self._caller_of(call), call)
            except CallRefused as refusal:
                status = refusal.status
                code = GrpcStatus.PERMISSION_DENIED if status.code in _DENIED else GrpcStatus.INVALID_ARGUMENT
                raise CallEnded(code, status.message) from None

        self._methods["Telemetry"] = Method(handle, MAX_REQUEST_BYTES, is_telemetry=True, has_one_answer=False)

    def unsupported(self, name: str) -> None:
        """Adds a method that responds with NOT_IMPLEMENTED."""

        async def refuse(caller: Caller, request: object) -> object:
            raise CallRefused(api.NOT_IMPLEMENTED, f"{name} is not supported by this broker")

        self.unary(name, refuse)

    def methods(self) -> Mapping[bytes, Method]:
        """Returns the methods, keyed by path. One of them accepts and discards clients' metrics."""

        async def drop(call: Call) -> None:
            await call.write(b"")

        by_path = {f"/{SERVICE}/{name}".encode(): method for name, method in self._methods.items()}
        return by_path | {f"/{METRICS}/Export".encode(): Method(drop, _MAX_METRICS_BYTES)}


_DENIED: Final = (api.UNAUTHORIZED, api.FORBIDDEN)


async def _request(call: Call) -> bytes:
    data = await call.read()
    if data is None:
        raise CallEnded(GrpcStatus.INTERNAL, "the call has no request message")
    return data


def _status(name: str, error: Exception) -> api.Status:
    if isinstance(error, CallRefused):
        return error.status
    if isinstance(error, DecodeError):
        return api.Status(code=api.BAD_REQUEST, message=f"cannot decode the {name}Request")
    logger.error("%s failed", name, exc_info=error)
    return api.Status(code=api.INTERNAL_ERROR, message=INTERNAL_ERROR)


def _encoded(message: Message) -> bytes:
    return message.SerializeToString()
