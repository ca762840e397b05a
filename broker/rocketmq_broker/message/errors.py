"""The errors of the message package."""


class MessageError(Exception):
    """Base class of the errors of this package."""


class IllegalMessage(MessageError):
    """Raised if a message must not be sent, because it has no body, is too large, or has an invalid topic or property."""


class CorruptRecord(MessageError):
    """Raised if bytes are not a valid record, because they are truncated, damaged, or other data."""


class BodyTooLong(CorruptRecord):
    """Raised if a body exceeds the reader's limit when it is decompressed."""


class UnreadableJson(MessageError):
    """Raised if a text is neither standard JSON nor JSON as written by the library fastjson."""
