"""The calls of the API: bytes in, bytes out (RocketMQ's GrpcMessagingApplication).

The bytes are decoded here, not by gRPC's library, so that damaged ones get an answer in words and no line in the log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message

from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.remoting.dispatcher import INTERNAL_ERROR

logger = logging.getLogger(__name__)

SERVICE: Final = "apache.rocketmq.v2.MessagingService"
METRICS: Final = "opentelemetry.proto.collector.metrics.v1.MetricsService"

CallerOf = Callable[["grpc.aio.ServicerContext[Any, Any]"], Caller]
"""Returns who makes a call. Raises CallRefused."""
Unary = Callable[[Caller, Any], Awaitable[Any]]
Streaming = Callable[[Caller, Any], AsyncIterator[Any]]
TelemetryServed = Callable[[Caller, AsyncIterator[bytes], Callable[[bytes], Awaitable[None]]], Awaitable[None]]


class Calls:
    """The calls, by name, as handlers for gRPC's library. Each error becomes a status, and ends nothing else."""

    def __init__(self, caller_of: CallerOf) -> None:
        self._caller_of = caller_of
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def unary(self, name: str, serve: Unary) -> None:
        """Adds a call with one answer."""
        request_type, response_type = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")

        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            try:
                response = await serve(self._caller_of(context), request_type.FromString(data))
            except Exception as error:
                response = response_type(status=_status(name, error))
            return _encoded(response)

        self._handlers[name] = grpc.unary_unary_rpc_method_handler(handle)

    def streaming(self, name: str, serve: Streaming) -> None:
        """Adds a call with a stream of answers."""
        request_type, response_type = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")

        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[bytes]:
            try:
                async for response in serve(self._caller_of(context), request_type.FromString(data)):
                    yield _encoded(response)
            except Exception as error:
                yield _encoded(response_type(status=_status(name, error)))

        self._handlers[name] = grpc.unary_stream_rpc_method_handler(handle)

    def telemetry(self, serve: TelemetryServed) -> None:
        """Adds Telemetry: commands in both directions. A refusal ends it with a status of gRPC's own, as Apache's proxy does."""

        async def handle(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> None:
            try:
                await serve(self._caller_of(context), requests, context.write)
            except CallRefused as refusal:
                status = refusal.status
                code = grpc.StatusCode.PERMISSION_DENIED if status.code in _DENIED else grpc.StatusCode.INVALID_ARGUMENT
                await context.abort(code, status.message)

        self._handlers["Telemetry"] = grpc.stream_stream_rpc_method_handler(handle)

    def unsupported(self, name: str) -> None:
        """Adds a call that is answered with NOT_IMPLEMENTED."""

        async def refuse(caller: Caller, request: object) -> object:
            raise CallRefused(api.NOT_IMPLEMENTED, f"{name} is not supported by this broker")

        self.unary(name, refuse)

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """Returns all of them, and one that takes clients' metrics and drops them."""

        async def drop(data: bytes, context: object) -> bytes:
            return b""

        metrics = {"Export": grpc.unary_unary_rpc_method_handler(drop)}
        return (
            grpc.method_handlers_generic_handler(SERVICE, self._handlers),
            grpc.method_handlers_generic_handler(METRICS, metrics),
        )


_DENIED: Final = (api.UNAUTHORIZED, api.FORBIDDEN)


def _status(name: str, error: Exception) -> api.Status:
    if isinstance(error, CallRefused):
        return error.status
    if isinstance(error, DecodeError):
        return api.Status(code=api.BAD_REQUEST, message=f"no {name}Request: the bytes cannot be decoded")
    logger.error("%s failed", name, exc_info=error)
    return api.Status(code=api.INTERNAL_ERROR, message=INTERNAL_ERROR)


def _encoded(message: Message) -> bytes:
    return message.SerializeToString()
