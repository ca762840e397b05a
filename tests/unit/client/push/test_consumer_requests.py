"""Tests the requests of a broker to a push consumer."""

import pytest

from rocketmq_broker.client.push.consumer_requests import ConsumerRequests
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.group import MessageQueueForC, ResetOffsetBody, ResetOffsetBodyForC
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import encode_request
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.group import ResetOffsetRequestHeader
from rocketmq_broker.protocol.queue_table import QueueTable
from tests.unit.client.messages import QUEUE


class Moves:
    """A replacement for the assigned queues that records the offsets to which queues are moved."""

    def __init__(self) -> None:
        self.made: list[tuple[MessageQueue, int]] = []

    def move(self, queue: MessageQueue, offset: int) -> None:
        self.made.append((queue, offset))


FOR_JAVA = ResetOffsetBody(offset_table=QueueTable({QUEUE: 7})).encode()
FOR_C = ResetOffsetBodyForC(offset_table=[MessageQueueForC(QUEUE.broker_name, 7, QUEUE.queue_id, QUEUE.topic)]).encode()


@pytest.mark.parametrize("body", [FOR_JAVA, FOR_C])
@pytest.mark.parametrize(("group", "moves"), [("group", [(QUEUE, 7)]), ("another", [])])
def test_an_operator_moves_the_groups_queues_whichever_language_the_broker_takes_the_client_for(
    body: bytes, group: str, moves: list[tuple[MessageQueue, int]]
) -> None:
    assignment = Moves()
    requests = ConsumerRequests("group", assignment, None, None)  # type: ignore[arg-type]
    header = ResetOffsetRequestHeader(topic=QUEUE.topic, group=group, timestamp=0, is_force=True)
    code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
    (request,) = FrameDecoder().feed(encode_request(code, header, body, opaque=1))

    requests.handlers[code](None, request)  # type: ignore[arg-type]

    assert assignment.made == moves
