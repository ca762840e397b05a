"""Maps from message queues, as bodies hold them; on the wire their keys are objects without quotes (see `fastjson`)."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol import fastjson

V = TypeVar("V")


class MessageQueueData(msgspec.Struct, rename="camel", frozen=True):
    """A message queue on the wire."""

    broker_name: str
    queue_id: int
    topic: str

    @classmethod
    def of(cls, queue: MessageQueue) -> MessageQueueData:
        """A queue of the program, as the wire holds it."""
        return cls(broker_name=queue.broker_name, queue_id=queue.queue_id, topic=queue.topic)

    def to_queue(self) -> MessageQueue:
        """A queue of the wire, as the program uses it."""
        return MessageQueue(topic=self.topic, broker_name=self.broker_name, queue_id=self.queue_id)


class QueueTable(UserDict[MessageQueue, V]):
    """A map from MessageQueue that bodies can hold."""


def encode_table(table: QueueTable[object]) -> object:
    """For msgspec: how a QueueTable is written, the only type it does not know."""
    return fastjson.object_keyed([(MessageQueueData.of(queue), msgspec.Raw(encode(entry))) for queue, entry in table.items()])


def decode_table(wanted: type, value: object) -> object:
    """For msgspec: how a QueueTable is read, its keys being strings by then. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a map from message queues, got {type(value).__name__}")
    return QueueTable({_queue(key): convert(entry, *get_args(wanted)) for key, entry in value.items()})


def encode(value: object) -> bytes:
    """JSON with the tables in it as fastjson writes them."""
    return msgspec.json.encode(value, enc_hook=encode_table)


def convert(value: object, wanted: Any) -> Any:
    """Plain values as the type wanted. Raises msgspec.ValidationError."""
    return msgspec.convert(value, wanted, strict=False, str_keys=True, dec_hook=decode_table)


def _queue(key: str) -> MessageQueue:
    return msgspec.json.decode(key, type=MessageQueueData).to_queue()
