"""Lists the units (entries) of a consume queue (QUERY_CONSUME_QUEUE in RocketMQ's AdminBrokerProcessor)."""

from collections.abc import Mapping
from typing import Final

from rocketmq_broker.protocol.bodies.broker import ConsumeQueueData, QueryConsumeQueueResponseBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.topic import QueryConsumeQueueRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.store import MessageStore

MAX_UNITS: Final = 1024
_NO_FILTER: Final = "null"
"""The filter data in the response for a group that is online. RocketMQ sends it for groups that filter only by tags."""


class ConsumeQueueProcessor:
    """Lists the units of consume queues. The response may include a group's subscription."""

    def __init__(self, *, store: MessageStore, consumer_groups: ConsumerGroups) -> None:
        self._store = store
        self._consumers = consumer_groups

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handler of the requests that `mqadmin queryCq` sends."""
        return {RequestCode.QUERY_CONSUME_QUEUE: self.query}

    def query(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with units of a consume queue, starting at an index."""
        header = command.decode_header(QueryConsumeQueueRequestHeader)
        name, topic = header.topic or "", (header.topic or "").encode()
        # The remarks are RocketMQ's, word for word.
        if header.queue_id not in self._store.queues().get(topic, ()):
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{header.queue_id}@{name} is not exist!")
        units = self._store.consume_queue_units(topic, header.queue_id, header.index, min(header.count, MAX_UNITS))
        if units is None:
            remark = f"Index {header.index} of {header.queue_id}@{name} is not exist!"
            return encode_response(command, ResponseCode.SUCCESS, remark=remark)
        body = QueryConsumeQueueResponseBody(
            queue_data=[
                ConsumeQueueData(physic_offset=unit.commit_log_offset, physic_size=unit.size, tags_code=unit.tags_code)
                for unit in units
            ],
            max_queue_index=self._store.max_offset(topic, header.queue_id),
            min_queue_index=self._store.min_offset(topic, header.queue_id),
        )
        if header.consumer_group is not None:
            self._add_subscription(body, header.consumer_group, name)
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def _add_subscription(self, body: QueryConsumeQueueResponseBody, group_name: str, topic: str) -> None:
        group = self._consumers.find(group_name)
        body.subscription_data = group.subscriptions.get(topic) if group else None
        is_online = body.subscription_data is not None
        body.filter_data = _NO_FILTER if is_online else f"{group_name}@{topic} is not online!"
