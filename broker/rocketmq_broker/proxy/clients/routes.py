"""Routes and assignments: this broker, under the address by which the client came (RocketMQ's RouteActivity)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from rocketmq_broker.message import permissions, topics
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.proxy.answers import OK, CallRefused
from rocketmq_broker.proxy.checks import refuse_consumer_group, refuse_endpoints, refuse_topic
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.proxy.protos.definition_pb2 import MessageType, Permission
from rocketmq_broker.server.topics.topic_table import TopicTable

AUTO_CREATED_QUEUES: Final = 4
"""The queues of a topic that a send creates, as clients of RocketMQ ask for it; fewer if the broker's default is less."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""gRPC's libraries read no longer message unless they are set to."""
_ALL_QUEUES: Final = -1
_LIKE_ANY: Final = 0
_ALL_TYPES: Final = (api.NORMAL, api.FIFO, api.DELAY, api.TRANSACTION)
_TYPES: Final[dict[str, tuple[MessageType, ...]]] = {
    "NORMAL": (api.NORMAL,),
    "FIFO": (api.FIFO,),
    "DELAY": (api.DELAY,),
    "TRANSACTION": (api.TRANSACTION,),
}


class TopicRoutes:
    """The topics of this broker, as clients of RocketMQ 5 see them."""

    def __init__(self, topic_table: TopicTable, broker_name: str, own_address: tuple[str, int]) -> None:
        """`own_address` is for clients that do not say by which address they came."""
        self._topics = topic_table
        self._broker_name = broker_name
        self._own_address = own_address

    def query_route(self, request: service.QueryRouteRequest) -> bytes:
        """Returns the topic's queues, encoded. Raises CallRefused if there is no such topic, and a send may not create it."""
        config = self.topic(request.topic.name)
        permissions_of_queues = _permissions(config)
        like = self._queue(request.topic, _LIKE_ANY, api.READ_WRITE, config, request.endpoints)
        if (total_bytes := like.ByteSize() * len(permissions_of_queues)) > MAX_ANSWER_BYTES:
            reason = f"endpoints or namespace too long: the route has {total_bytes} bytes, at most {MAX_ANSWER_BYTES}"
            raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)
        # Encoded messages in a row are one message with all their queues. It takes half the time and a tenth of the memory.
        part = service.QueryRouteResponse(message_queues=[like])
        queue = part.message_queues[0]
        parts = [service.QueryRouteResponse(status=OK).SerializeToString()]
        for queue_id, permission in enumerate(permissions_of_queues):
            queue.id, queue.permission = queue_id, permission
            parts.append(part.SerializeToString())
        return b"".join(parts)

    def query_assignment(self, request: service.QueryAssignmentRequest) -> service.QueryAssignmentResponse:
        """Returns what a consumer receives from: all queues in one. Raises CallRefused."""
        config = self.topic(request.topic.name)
        refuse_consumer_group(request.group.name)
        if not permissions.is_readable(config.perm) or config.read_queue_nums <= 0:
            raise CallRefused(api.FORBIDDEN, "no readable queue")
        queue = self._queue(request.topic, _ALL_QUEUES, _permission(config.perm), config, request.endpoints)
        return service.QueryAssignmentResponse(status=OK, assignments=[api.Assignment(message_queue=queue)])

    def is_there(self, name: str) -> bool:
        """Returns whether the topic exists now."""
        return self._topics.get(name) is not None

    def topic(self, name: str) -> TopicConfig:
        """Returns the topic's settings: those that a send would create it with, if there is none and it may.

        Raises CallRefused.
        """
        refuse_topic(name)
        config = self._topics.get(name)
        if config is not None:
            return config
        model = self._topics.get(topics.AUTO_CREATE_TOPIC)
        if model is None or not permissions.is_inherited(model.perm):
            raise CallRefused(api.TOPIC_NOT_FOUND, f"No topic route info in name server for the topic: {name}")
        queues = min(AUTO_CREATED_QUEUES, model.write_queue_nums)
        return replace(
            model, topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=model.perm & ~permissions.INHERIT
        )

    def refuse_unwritable(self, name: str) -> None:
        """Raises CallRefused for an illegal name, and for a topic without a queue to write to."""
        refuse_topic(name)
        config = self._topics.get(name)
        if config is not None and config.write_queue_nums <= 0:
            raise CallRefused(api.FORBIDDEN, f"the topic {name} has no queue to write to")

    def accepted_types(self, name: str) -> tuple[MessageType, ...]:
        """Returns the types of messages that the topic takes: all unless the attribute message.type names one."""
        config = self._topics.get(name)
        return _accepted(config) if config is not None else _ALL_TYPES

    def is_fifo(self, name: str) -> bool:
        """Returns whether the topic is for FIFO messages alone, which are consumed queue by queue."""
        return self.accepted_types(name) == (api.FIFO,)

    def _queue(
        self, topic: api.Resource, queue_id: int, permission: Permission, config: TopicConfig, endpoints: api.Endpoints
    ) -> api.MessageQueue:
        refuse_endpoints(endpoints)
        broker = api.Broker(name=self._broker_name, id=0, endpoints=endpoints if endpoints.addresses else self._endpoints())
        return api.MessageQueue(
            topic=topic, id=queue_id, permission=permission, broker=broker, accept_message_types=_accepted(config)
        )

    def _endpoints(self) -> api.Endpoints:
        host, port = self._own_address
        scheme = api.IPv6 if ":" in host else api.IPv4
        return api.Endpoints(scheme=scheme, addresses=[api.Address(host=host, port=port)])


def _accepted(config: TopicConfig) -> tuple[MessageType, ...]:
    attributes = config.attributes if isinstance(config.attributes, dict) else {}
    return _TYPES.get(attributes.get("message.type", ""), _ALL_TYPES)


def _permission(perm: int) -> Permission:
    readable, writeable = permissions.is_readable(perm), permissions.is_writeable(perm)
    if readable and writeable:
        return api.READ_WRITE
    return api.READ if readable else api.WRITE if writeable else api.NONE


def _permissions(config: TopicConfig) -> list[Permission]:
    """Returns the permission of each queue: those below both numbers may be read and written."""
    reads = config.read_queue_nums if permissions.is_readable(config.perm) else 0
    writes = config.write_queue_nums if permissions.is_writeable(config.perm) else 0
    both = min(reads, writes)
    return [api.READ_WRITE] * both + [api.READ] * (reads - both) + [api.WRITE] * (writes - both)
