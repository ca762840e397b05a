"""Bodies of pop requests, and of the assignment of queues by the broker (RocketMQ 5)."""

import base64
import binascii
from enum import Enum
from typing import ClassVar, Final

import msgspec

from rocketmq_broker.protocol.bodies.heartbeat import MessageModel
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.errors import BodyError
from rocketmq_broker.protocol.queue_table import MessageQueueData

_MAX_BITS: Final = 4096


class MessageRequestMode(Enum):
    """The modes in which a group's consumers get a topic's messages: pull or pop."""

    PULL = "PULL"
    POP = "POP"


class BatchAck(BodyPart):
    """The acknowledgement of messages from one queue that were popped together."""

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    start_offset: int = msgspec.field(name="so")
    queue_id: int = msgspec.field(name="q")
    revive_queue_id: int = msgspec.field(name="rq")
    pop_time: int = msgspec.field(name="pt")
    invisible_time: int = msgspec.field(name="it")
    bit_set: str = msgspec.field(name="b")
    """A bit set in base64. Bit n stands for the message at offset `start_offset` + n."""
    retry: str = msgspec.field(name="r", default="0")

    def offsets(self) -> list[int]:
        """Returns the offsets of the acknowledged messages. Raises BodyError."""
        try:
            bits = base64.b64decode(self.bit_set, validate=True)
        except binascii.Error as error:
            raise BodyError(f"bit set of an acknowledgement is not base64: {error}") from None
        if len(bits) > _MAX_BITS // 8:
            raise BodyError(f"bit set of an acknowledgement too long: {len(bits) * 8} bits, at most {_MAX_BITS}")
        number = int.from_bytes(bits, "little")
        return [self.start_offset + bit for bit in range(number.bit_length()) if number >> bit & 1]


class BatchAckMessageRequestBody(Body):
    """The body of BATCH_ACK_MESSAGE."""

    broker_name: str
    acks: list[BatchAck] = []


class QueryAssignmentRequestBody(Body):
    """The body of QUERY_ASSIGNMENT, which requests the queues assigned to a consumer."""

    constants: ClassVar = {"messageModel": MessageModel}

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = "AVG"
    message_model: MessageModel = MessageModel.CLUSTERING


class MessageQueueAssignment(BodyPart):
    """A queue assigned to a consumer. With POP, queue id -1 means all queues of the broker."""

    message_queue: MessageQueueData
    mode: MessageRequestMode


class QueryAssignmentResponseBody(Body):
    """The response body of QUERY_ASSIGNMENT. If the list is None, the consumer keeps its current queues."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None


class SetMessageRequestModeRequestBody(Body):
    """The body of SET_MESSAGE_REQUEST_MODE, which sets how a group gets a topic's messages."""

    constants: ClassVar = {"mode": MessageRequestMode}

    topic: str
    consumer_group: str
    mode: MessageRequestMode = MessageRequestMode.PULL
    pop_share_queue_num: int = 0
    """The number of other consumers with which each consumer shares its queues. If it is 0, all consumers share all queues."""
