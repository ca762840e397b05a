"""The exceptions that functions of this package raise."""


class MessageError(Exception):
    """Base class of the errors of this package."""


class IllegalMessage(MessageError):
    """The message must not be sent: it has no body, is too large, or has an invalid topic or property."""


class CorruptRecord(MessageError):
    """The bytes are not a valid record: truncated, damaged, or other data."""


class BodyTooLong(CorruptRecord):
    """A compressed body exceeds the reader's limit when decompressed."""


class UnreadableJson(MessageError):
    """The text is neither standard JSON nor JSON as written by the library fastjson."""
