"""The errors of the store."""

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
    """Base class of this package's errors. IllegalMessage and CorruptRecord belong to the message package."""


class StoreUnwritable(StoreError):
    """The store refused a message because the disk is full, read-only or failing. No part of the message is stored."""


class UnreadableRecord(StoreError):
    """No record can be read at an offset. The subclass shows whether a later attempt can succeed."""


class RecordNotFound(UnreadableRecord):
    """The record does not exist yet: the commit log ends before it, or no consume queue contains the message."""


class RecordLost(UnreadableRecord, CorruptRecord):
    """The record will never be readable: it expired, is damaged, or never existed."""


class StoreLocked(StoreError):
    """Another broker has the store open."""


class DamagedStore(StoreError):
    """The store cannot be opened safely: recovery would have to guess and might lose messages. An operator must examine it."""
