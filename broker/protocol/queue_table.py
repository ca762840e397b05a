"""Maps from message queues, as bodies hold them; on the wire their keys are objects without quotes (see `fastjson`)."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from broker.message import MessageQueue
from broker.protocol import fastjson

V = TypeVar("V")


class MessageQueueData(msgspec.Struct, rename="camel", frozen=True):
    """A message queue on the wire."""

    broker_name: str
    queue_id: int
    topic: str

    @classmethod
    def of(cls, queue: MessageQueue) -> MessageQueueData:
        """The same queue, for the wire."""
        return cls(broker_name=queue.broker_name, queue_id=queue.queue_id, topic=queue.topic)

    def to_queue(self) -> MessageQueue:
        """The same queue, for the program."""
        return MessageQueue(topic=self.topic, broker_name=self.broker_name, queue_id=self.queue_id)


class QueueTable(UserDict[MessageQueue, V]):
    """A map from MessageQueue that bodies can hold."""


def encode_table(value: object) -> object:
    """For msgspec: how a QueueTable is written."""
    if isinstance(value, QueueTable):
        return fastjson.object_keyed([(MessageQueueData.of(queue), msgspec.Raw(encode(entry))) for queue, entry in value.items()])
    raise NotImplementedError(f"{type(value).__name__} cannot be written")


def decode_table(wanted: type, value: object) -> object:
    """For msgspec: how a QueueTable is read, its keys being strings by then."""
    if get_origin(wanted) is QueueTable and isinstance(value, Mapping):
        return QueueTable({_queue(key): convert(entry, *get_args(wanted)) for key, entry in value.items()})
    raise NotImplementedError(f"{wanted} cannot be read")


def encode(value: object) -> bytes:
    """JSON with the tables in it as fastjson writes them."""
    return msgspec.json.encode(value, enc_hook=encode_table)


def convert(value: object, wanted: Any) -> Any:
    """Plain values as the type wanted. Raises msgspec.ValidationError."""
    return msgspec.convert(value, wanted, strict=False, str_keys=True, dec_hook=decode_table)


def _queue(key: str) -> MessageQueue:
    return msgspec.json.decode(key, type=MessageQueueData).to_queue()
