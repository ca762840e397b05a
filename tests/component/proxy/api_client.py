"""A client of RocketMQ 5's gRPC API, which can also send damaged bytes."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

SERVICE = "/apache.rocketmq.v2.MessagingService/"
OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]
"""Without it the channels of a process share connections."""


class ApiClient:
    def __init__(self, channel: grpc.aio.Channel, endpoint: str, metadata: Mapping[str, str]) -> None:
        self.channel = channel
        host, port = endpoint.rsplit(":", 1)
        self.endpoints = api.Endpoints(scheme=api.IPv4, addresses=[api.Address(host=host, port=int(port))])
        self.metadata = tuple(metadata.items())

    async def bytes(self, name: str, data: bytes) -> bytes:
        """Sends these bytes, and returns the response."""
        return await self.channel.unary_unary(SERVICE + name)(data, metadata=self.metadata, timeout=30)

    async def call(self, name: str, **fields: Any) -> Any:
        request, response = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")
        return response.FromString(await self.bytes(name, request(**fields).SerializeToString()))

    async def stream(self, name: str, **fields: Any) -> list[Any]:
        request, response = getattr(service, f"{name}Request"), getattr(service, f"{name}Response")
        call = self.channel.unary_stream(SERVICE + name)(
            request(**fields).SerializeToString(), metadata=self.metadata, timeout=60
        )
        return [response.FromString(data) async for data in call]

    def telemetry(self) -> "Telemetry":
        return Telemetry(self.channel.stream_stream(SERVICE + "Telemetry")(metadata=self.metadata))

    async def producer(self, *topics: str) -> "Telemetry":
        """Returns the telemetry stream of a producer after the broker has registered the producer."""
        telemetry = self.telemetry()
        publishing = api.Publishing(topics=[api.Resource(name=topic) for topic in topics])
        await telemetry.settle(api.Settings(client_type=api.PRODUCER, access_point=self.endpoints, publishing=publishing))
        return telemetry

    def consumer_settings(self, kind: api.ClientType, *topics: str, group: str = "group") -> api.Settings:
        entries = [api.SubscriptionEntry(topic=api.Resource(name=topic)) for topic in topics]
        subscription = api.Subscription(group=api.Resource(name=group), subscriptions=entries)
        return api.Settings(client_type=kind, access_point=self.endpoints, subscription=subscription)

    async def end_transaction(self, entry: Any, resolution: api.TransactionResolution = api.COMMIT, **fields: Any) -> api.Code:
        """Ends the transaction of a sent message of the topic orders. Returns the status code."""
        named = {"topic": api.Resource(name="orders"), "message_id": entry.message_id, "transaction_id": entry.transaction_id}
        answer = await self.call("EndTransaction", **{**named, "resolution": resolution, **fields})
        return answer.status.code  # type: ignore[no-any-return]

    async def send(self, topic: str, body: bytes, *, message_id: str = "message-1", **system: Any) -> Any:
        properties = api.SystemProperties(message_id=message_id, **system)
        message = api.Message(topic=api.Resource(name=topic), body=body, system_properties=properties)
        return await self.call("SendMessage", messages=[message])


class Telemetry:
    def __init__(self, call: Any) -> None:
        self._call = call

    async def settle(self, settings: api.Settings) -> api.Settings:
        """Sends the settings, and returns the broker's settings."""
        await self._call.write(service.TelemetryCommand(settings=settings).SerializeToString())
        command = await self.next()
        assert command.status.code == api.OK
        return command.settings

    async def next(self) -> service.TelemetryCommand:
        return service.TelemetryCommand.FromString(await self._call.read())

    def end(self) -> None:
        self._call.cancel()

    async def finish(self) -> None:
        """Ends the stream, and returns when the broker has ended it as well."""
        await self._call.done_writing()
        assert await self._call.read() == grpc.aio.EOF


@asynccontextmanager
async def connected(endpoint: str | None, *, authority: bytes | None = None, **metadata: str) -> AsyncIterator[ApiClient]:
    """Yields a client. With `authority`, a PEM certificate, the client uses TLS and trusts that authority."""
    assert endpoint is not None
    given = {"x-mq-client-id": "client-1", **{name.replace("_", "-"): value for name, value in metadata.items()}}
    if authority is None:
        opened = grpc.aio.insecure_channel(endpoint, options=OWN_CONNECTION)
    else:
        opened = grpc.aio.secure_channel(endpoint, grpc.ssl_channel_credentials(authority), options=OWN_CONNECTION)
    async with opened as channel:
        yield ApiClient(channel, endpoint, {name: value for name, value in given.items() if value})
