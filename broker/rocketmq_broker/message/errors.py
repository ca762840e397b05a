"""What can be wrong with a message."""


class MessageError(Exception):
    """Base of the errors of this package."""


class IllegalMessage(MessageError):
    """A message that nobody may send: no body, too large, an unusable topic, a reserved character in a property."""


class CorruptRecord(MessageError):
    """Bytes that should hold a record and do not: torn, damaged, or something else."""


class BodyTooLong(CorruptRecord):
    """A compressed body that would be longer than its reader takes."""


class UnreadableJson(MessageError):
    """Text that is JSON neither by the standard nor as Apache's library fastjson writes it."""
