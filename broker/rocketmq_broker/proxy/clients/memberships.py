"""Registers clients with the broker through heartbeats (RocketMQ's ClientActivity)."""

import asyncio
from collections.abc import Iterable
from typing import Final

from rocketmq_broker.protocol.bodies.heartbeat import (
    EXPRESSION_SQL92,
    EXPRESSION_TAG,
    SUBSCRIBE_ALL,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.group import UnregisterClientRequestHeader
from rocketmq_broker.proxy.answers import OK, CallRefused
from rocketmq_broker.proxy.checks import refuse_consumer_group, refuse_topic
from rocketmq_broker.proxy.connections.caller import Caller
from rocketmq_broker.proxy.connections.session import ClientSession, ClientSessions
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

_CONSUME_TYPES: Final[dict[api.ClientType, ConsumeType]] = {
    api.PUSH_CONSUMER: ConsumeType.CONSUME_PASSIVELY,
    api.SIMPLE_CONSUMER: ConsumeType.CONSUME_ACTIVELY,
}


async def register(caller: Caller, session: ClientSession, settings: api.Settings) -> None:
    """Sends the client's heartbeat to the broker. Raises CallRefused.

    The producer group is the topic, as in Apache's proxy, because the gRPC API has no producer groups.
    """
    producers: list[ProducerData] = []
    consumers: list[ConsumerData] = []
    match settings.WhichOneof("pub_sub"):
        case "publishing":
            for topic in settings.publishing.topics:
                refuse_topic(topic.name)
            producers = [ProducerData(group_name=topic.name) for topic in settings.publishing.topics]
        case "subscription":
            consumers = [_consumer(settings)]
        case _:
            raise CallRefused(api.BAD_REQUEST, "the settings have neither publishing nor subscription")
    heartbeat = HeartbeatData(client_id=caller.client_id, producer_data_set=producers, consumer_data_set=consumers)
    await session.invoke(RequestCode.HEART_BEAT, body=heartbeat.encode(), system_error=api.TOO_MANY_REQUESTS)


async def heartbeat(caller: Caller, session: ClientSession, request: service.HeartbeatRequest) -> service.HeartbeatResponse:
    """Renews the client's membership in its groups. Raises CallRefused if the client has not sent its settings."""
    await register(caller, session, _settings(session, request.group))
    return service.HeartbeatResponse(status=OK)


async def leave(
    sessions: ClientSessions, caller: Caller, request: service.NotifyClientTerminationRequest
) -> service.NotifyClientTerminationResponse:
    """Removes the client from its groups. Raises CallRefused if the client has not sent its settings.

    The client's session ends with its telemetry, which the client closes before or after this call.
    """
    if sessions.ended_without_termination(caller):
        return service.NotifyClientTerminationResponse(status=OK)
    session = sessions.of(caller)
    settings, session.settings = _settings(session, request.group), None
    groups = [UnregisterClientRequestHeader(client_id="", producer_group=it.name) for it in settings.publishing.topics]
    if settings.HasField("subscription"):
        groups.append(UnregisterClientRequestHeader(client_id="", consumer_group=settings.subscription.group.name))
    try:
        await asyncio.gather(*(session.invoke(RequestCode.UNREGISTER_CLIENT, header) for header in groups))
    except CallRefused:
        if not session.is_over:  # the end of a session removes its client from all groups
            raise
    return service.NotifyClientTerminationResponse(status=OK)


def _settings(session: ClientSession, group: api.Resource) -> api.Settings:
    """Returns the client's settings. Raises CallRefused if there are none, or if a consumer's group is invalid."""
    if session.settings is None or not session.has_telemetry:
        raise CallRefused(api.UNRECOGNIZED_CLIENT_TYPE, "this client has not sent its settings: call Telemetry first")
    if session.settings.HasField("subscription"):
        refuse_consumer_group(group.name)
    return session.settings


def _consumer(settings: api.Settings) -> ConsumerData:
    consume_type = _CONSUME_TYPES.get(settings.client_type)
    if consume_type is None:
        name = api.ClientType.Name(settings.client_type) if settings.client_type in api.ClientType.values() else "unknown"
        raise CallRefused(api.UNRECOGNIZED_CLIENT_TYPE, f"consumers of type {name} are not supported by this broker")
    subscription = settings.subscription
    refuse_consumer_group(subscription.group.name)
    for entry in subscription.subscriptions:
        refuse_topic(entry.topic.name)
    return ConsumerData(
        group_name=subscription.group.name,
        consume_type=consume_type,
        subscription_data_set=_subscriptions(subscription.subscriptions),
    )


def _subscriptions(entries: Iterable[api.SubscriptionEntry]) -> list[SubscriptionData]:
    return [
        SubscriptionData(topic=entry.topic.name, sub_string=expression, expression_type=kind)
        for entry in entries
        for expression, kind in [expression_of(entry.expression)]
    ]


def expression_of(expression: api.FilterExpression) -> tuple[str, str]:
    """Returns the filter expression, and the broker's name for the type of expression."""
    kind = EXPRESSION_SQL92 if expression.type == api.SQL else EXPRESSION_TAG
    return expression.expression or SUBSCRIBE_ALL, kind
