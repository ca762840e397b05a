"""What can go wrong in the store."""

from rocketmq_broker.message.errors import CorruptRecord, IllegalMessage

__all__ = [
    "CorruptRecord",
    "DamagedStore",
    "IllegalMessage",
    "RecordLost",
    "RecordNotFound",
    "StoreError",
    "StoreLocked",
    "StoreUnwritable",
    "UnreadableRecord",
]


class StoreError(Exception):
    """Base of the errors of this package. IllegalMessage and CorruptRecord are the message package's."""


class StoreUnwritable(StoreError):
    """Nothing can be stored now: the disk is full, read-only or failing. Nothing of what was refused is stored."""


class UnreadableRecord(StoreError):
    """No record can be read at that offset; the two classes below tell whether asking again can help."""


class RecordNotFound(UnreadableRecord):
    """The record is not there yet: the commit log has not come that far, or no queue shows the message."""


class RecordLost(UnreadableRecord, CorruptRecord):
    """No intact record is there, and none will be: it expired, is damaged, or never was."""


class StoreLocked(StoreError):
    """Another broker has the store open."""


class DamagedStore(StoreError):
    """The store cannot be opened as it is, and guessing could lose messages: a person has to look."""
