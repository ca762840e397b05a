"""Maps in bodies whose keys are message queues. On the wire each key is a JSON object without quotes (see `fastjson`)."""

from collections import UserDict
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.text import fastjson

V = TypeVar("V")


class MessageQueueData(msgspec.Struct, rename="camel", frozen=True):
    """A message queue in its wire form."""

    broker_name: str
    queue_id: int
    topic: str

    @classmethod
    def of(cls, queue: MessageQueue) -> "MessageQueueData":
        """Converts a MessageQueue to its wire form."""
        return cls(broker_name=queue.broker_name, queue_id=queue.queue_id, topic=queue.topic)

    def to_queue(self) -> MessageQueue:
        """Converts the wire form to a MessageQueue."""
        return MessageQueue(topic=self.topic, broker_name=self.broker_name, queue_id=self.queue_id)


class QueueTable(UserDict[MessageQueue, V]):
    """A map in a body whose keys are message queues."""


def encode_table(table: QueueTable[object]) -> object:
    """Encodes a QueueTable for msgspec, which does not support this type."""
    return fastjson.object_keyed([(MessageQueueData.of(queue), msgspec.Raw(encode(entry))) for queue, entry in table.items()])


def decode_table(wanted: type, value: object) -> object:
    """Decodes a QueueTable for msgspec from a map with string keys. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a map with message queues as keys, not {type(value).__name__}")
    return QueueTable({_queue(key): convert(entry, *get_args(wanted)) for key, entry in value.items()})


def encode(value: object) -> bytes:
    """Encodes a value as JSON, with QueueTables in fastjson's form."""
    return msgspec.json.encode(value, enc_hook=encode_table)


def convert(value: object, wanted: Any) -> Any:
    """Converts plain values to the type `wanted`. Raises msgspec.ValidationError."""
    return msgspec.convert(value, wanted, strict=False, str_keys=True, dec_hook=decode_table)


def _queue(key: str) -> MessageQueue:
    return msgspec.json.decode(key, type=MessageQueueData).to_queue()
