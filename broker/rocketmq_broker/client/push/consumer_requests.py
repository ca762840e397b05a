"""Handles brokers' requests to a push consumer (RocketMQ's ClientRemotingProcessor)."""

import logging

from rocketmq_broker.client.instance.instance import RequestHandlers
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.rebalance.assignment import Assignment
from rocketmq_broker.client.rebalance.rebalance import Rebalance
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.group import ResetOffsetBody, ResetOffsetBodyForC
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.errors import BodyError
from rocketmq_broker.protocol.headers.group import NotifyConsumerIdsChangedRequestHeader, ResetOffsetRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection

logger = logging.getLogger(__name__)


class ConsumerRequests:
    """Handles two kinds of requests: changes of the group's members, which trigger a rebalance, and resets of offsets."""

    def __init__(self, group: str, assignment: Assignment, rebalance: Rebalance, routes: Routes) -> None:
        """The arguments are the parts of the consumer on which the requests act."""
        self._group = group
        self._assignment = assignment
        self._rebalance = rebalance
        self._routes = routes
        self.handlers: RequestHandlers = {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._members_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_offsets,
        }

    def _members_changed(self, connection: Connection, request: RemotingCommand) -> None:
        header = request.decode_header(NotifyConsumerIdsChangedRequestHeader)
        if header.consumer_group == self._group:
            self._rebalance.trigger()
            self._routes.look_for_missing()

    def _reset_offsets(self, connection: Connection, request: RemotingCommand) -> None:
        header = request.decode_header(ResetOffsetRequestHeader)
        if header.group == self._group:
            for queue, offset in _offsets(request.body).items():
                logger.info("an operator reset %s to offset %d", queue, offset)
                self._assignment.move(queue, offset)


def _offsets(body: bytes) -> dict[MessageQueue, int]:
    try:
        return dict(ResetOffsetBody.decode(body).offset_table)
    except BodyError:
        entries = ResetOffsetBodyForC.decode(body).offset_table
        return {MessageQueue(entry.topic, entry.broker_name, entry.queue_id): entry.offset for entry in entries}
