"""Routes and assignments, which contain this broker's address as the client used it (RocketMQ's RouteActivity)."""

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
"""The number of queues that RocketMQ's clients request for an auto-created topic. The broker's default may be lower."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of an answer in bytes: the default maximum message size of gRPC libraries."""
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
    """The routes of this broker's topics."""

    def __init__(self, topic_table: TopicTable, broker_name: str, own_address: tuple[str, int]) -> None:
        """Creates the routes. `own_address` is used for clients that do not send their endpoints."""
        self._topics = topic_table
        self._broker_name = broker_name
        self._own_address = own_address

    def query_route(self, request: service.QueryRouteRequest) -> bytes:
        """Returns the encoded route of a topic. Raises CallRefused if the topic does not exist and cannot be auto-created."""
        config = self.topic(request.topic.name)
        permissions_of_queues = _permissions(config)
        like = self._queue(request.topic, _LIKE_ANY, api.READ_WRITE, config, request.endpoints)
        if (total_bytes := like.ByteSize() * len(permissions_of_queues)) > MAX_ANSWER_BYTES:
            reason = f"endpoints or namespace too long: the route has {total_bytes} bytes, at most {MAX_ANSWER_BYTES}"
            raise CallRefused(api.ILLEGAL_ACCESS_POINT, reason)
        # Concatenated encoded messages decode as one message with all queues. That takes half the time and a tenth of the memory.
        part = service.QueryRouteResponse(message_queues=[like])
        queue = part.message_queues[0]
        parts = [service.QueryRouteResponse(status=OK).SerializeToString()]
        for queue_id, permission in enumerate(permissions_of_queues):
            queue.id, queue.permission = queue_id, permission
            parts.append(part.SerializeToString())
        return b"".join(parts)

    def query_assignment(self, request: service.QueryAssignmentRequest) -> service.QueryAssignmentResponse:
        """Returns a consumer's assignment, which is a single queue that represents all queues.

        Raises CallRefused for an invalid group, and for a topic that does not exist or has no readable queue.
        """
        config = self.topic(request.topic.name)
        refuse_consumer_group(request.group.name)
        if not permissions.is_readable(config.perm) or config.read_queue_nums <= 0:
            raise CallRefused(api.FORBIDDEN, f"the topic {request.topic.name} has no readable queue")
        queue = self._queue(request.topic, _ALL_QUEUES, _permission(config.perm), config, request.endpoints)
        return service.QueryAssignmentResponse(status=OK, assignments=[api.Assignment(message_queue=queue)])

    def is_there(self, name: str) -> bool:
        """Returns whether the topic exists."""
        return self._topics.get(name) is not None

    def topic(self, name: str) -> TopicConfig:
        """Returns the topic's settings, or the settings with which sending a message would auto-create the topic.

        Raises CallRefused if the topic does not exist and cannot be auto-created.
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
        """Raises CallRefused for an invalid name, and for a topic without writable queues."""
        refuse_topic(name)
        config = self._topics.get(name)
        if config is not None and config.write_queue_nums <= 0:
            raise CallRefused(api.FORBIDDEN, f"topic {name} has no queue to write to: set writeQueueNums")

    def accepted_types(self, name: str) -> tuple[MessageType, ...]:
        """Returns the message types that the topic accepts: all types unless the attribute message.type restricts them."""
        config = self._topics.get(name)
        return _accepted(config) if config is not None else _ALL_TYPES

    def is_fifo(self, name: str) -> bool:
        """Returns whether the topic accepts only FIFO messages, which are consumed in order."""
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
    """Returns the permission of each queue. Queue ids below both queue numbers are readable and writable."""
    reads = config.read_queue_nums if permissions.is_readable(config.perm) else 0
    writes = config.write_queue_nums if permissions.is_writeable(config.perm) else 0
    both = min(reads, writes)
    return [api.READ_WRITE] * both + [api.READ] * (reads - both) + [api.WRITE] * (writes - both)
