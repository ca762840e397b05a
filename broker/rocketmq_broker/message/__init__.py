"""Messages with their properties, flags and ids, and the record in which a message is stored. All other packages use these."""

from rocketmq_broker.message.errors import CorruptRecord, IllegalMessage, MessageError
from rocketmq_broker.message.message import Message, MessageExt, MessageQueue

__all__ = ["CorruptRecord", "IllegalMessage", "Message", "MessageError", "MessageExt", "MessageQueue"]
