"""Divides the queues of a topic among the consumers of a group (RocketMQ's QueryAssignmentProcessor).

Consumers with clientRebalance=false request their queues from the broker. The response also contains the request mode: pull or
pop.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from rocketmq_broker.message import MessageQueue, permissions
from rocketmq_broker.protocol.allocation import STRATEGIES, Strategy
from rocketmq_broker.protocol.bodies.heartbeat import MessageModel
from rocketmq_broker.protocol.bodies.pop import (
    MessageQueueAssignment,
    MessageRequestMode,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from rocketmq_broker.protocol.bodies.route import TopicRouteData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.queue_table import MessageQueueData
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.assignments.request_modes import RequestModes
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.shares import RequestsInProgress
from rocketmq_broker.server.topics.names import refuse_as_consumer

MAX_ASKED_AT_ONCE: Final = 1000
"""The maximum number of route requests to the name servers that are in progress at the same time."""

RouteOf = Callable[[str], Awaitable[TopicRouteData | None]]


class AssignmentProcessor:
    """Assigns queues to consumers. Considers the queues on all brokers that are registered with the name servers."""

    def __init__(self, *, modes: RequestModes, consumer_groups: ConsumerGroups, route_of: RouteOf, tasks: Tasks) -> None:
        self._modes = modes
        self._consumers = consumer_groups
        self._route_of = route_of
        self._tasks = tasks
        self._in_progress = RequestsInProgress()

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of a consumer's request for its queues, and of an operator's request to set a request mode."""
        return {RequestCode.QUERY_ASSIGNMENT: self.query, RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_mode}

    def query(self, connection: Connection, command: RemotingCommand) -> None:
        """Responds with the consumer's queues, or with null if the consumer must keep its current queues."""
        wanted = QueryAssignmentRequestBody.decode(command.body)
        refuse_as_consumer(wanted.consumer_group)
        if self._in_progress.is_full_for(connection, MAX_ASKED_AT_ONCE):
            under_way = self._in_progress.count
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, f"too many assignments in progress: {under_way}; try again")
        self._in_progress.begin(connection)
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        self._tasks.start("an assignment of queues", self._answer(connection, reply_to, wanted))

    def set_mode(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Sets the request mode (pull or pop) of a group for a topic."""
        self._modes.set(SetMessageRequestModeRequestBody.decode(command.body))
        return encode_response(command, ResponseCode.SUCCESS)

    async def _answer(self, connection: Connection, reply_to: ReplyTo, wanted: QueryAssignmentRequestBody) -> None:
        try:
            route = await self._route_of(wanted.topic)
        finally:
            self._in_progress.end(connection)
        queues = _queues(wanted.topic, route) if route is not None else []
        mode = self._modes.get(wanted.topic, wanted.consumer_group)
        share = self._share(wanted, queues, mode) if queues else None
        body = QueryAssignmentResponseBody(
            None if share is None else [MessageQueueAssignment(MessageQueueData.of(queue), mode.mode) for queue in share]
        )
        connection.send(encode_response(reply_to, ResponseCode.SUCCESS, body=body.encode()))

    def _share(
        self, wanted: QueryAssignmentRequestBody, queues: list[MessageQueue], mode: SetMessageRequestModeRequestBody
    ) -> list[MessageQueue] | None:
        if wanted.message_model is MessageModel.BROADCASTING:
            return queues
        group = self._consumers.find(wanted.consumer_group)
        strategy = STRATEGIES.get(wanted.strategy_name)
        if group is None or strategy is None:
            return None
        members = sorted(set(group.client_ids()))
        if mode.mode is MessageRequestMode.POP:
            return _share_of_pops(wanted.client_id, queues, members, mode.pop_share_queue_num, strategy)
        return strategy(queues, members, wanted.client_id)


def _share_of_pops(
    client_id: str, queues: list[MessageQueue], members: list[str], shared_with: int, strategy: Strategy
) -> list[MessageQueue]:
    """Returns the queues from which a consumer pops (allocate4Pop).

    These are the queues assigned to this consumer and to the next `shared_with` members. If `shared_with` is not positive or
    covers all other members, returns all queues, as queue id -1 of each broker.
    """
    if not 0 < shared_with < len(members) - 1:
        return [MessageQueue(topic, broker, -1) for topic, broker in dict.fromkeys((it.topic, it.broker_name) for it in queues)]
    if client_id not in members:
        return []
    index = members.index(client_id)
    if len(members) > len(queues):
        return [sorted(queues)[index % len(queues)]]
    sharers = (members[(index + number) % len(members)] for number in range(shared_with + 1))
    return list(dict.fromkeys(queue for member in sharers for queue in strategy(queues, members, member)))


def _queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    readable = [queues for queues in route.queue_datas if permissions.is_readable(queues.perm)]
    return [MessageQueue(topic, it.broker_name, queue_id) for it in readable for queue_id in range(it.read_queue_nums)]
