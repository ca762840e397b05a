"""The errors of messages."""


class MessageError(Exception):
    """Base of the errors of this package."""


class IllegalMessage(MessageError):
    """A message that no client may send: no body, too large, an unusable topic, a reserved character in a property."""


class CorruptRecord(MessageError):
    """Bytes that are no record: torn, damaged, or something else."""


class BodyTooLong(CorruptRecord):
    """A compressed body that would exceed its reader's limit when uncompressed."""


class UnreadableJson(MessageError):
    """A text that is JSON neither by the standard nor in the form of Apache's library fastjson."""
