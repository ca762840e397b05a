"""The words that every package shares: messages, their properties, flags, ids, and the record that stores them."""

from rocketmq_broker.message.errors import CorruptRecord, IllegalMessage, MessageError
from rocketmq_broker.message.message import Message, MessageExt, MessageQueue

__all__ = ["CorruptRecord", "IllegalMessage", "Message", "MessageError", "MessageExt", "MessageQueue"]
