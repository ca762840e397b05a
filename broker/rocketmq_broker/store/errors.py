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
    """Raised if the store refuses a message because the disk is full, read-only or failing. No part of the message is stored."""


class UnreadableRecord(StoreError):
    """Raised if no record can be read at an offset. The subclass indicates whether a later attempt can succeed."""


class RecordNotFound(UnreadableRecord):
    """Raised if a record does not exist yet, because the commit log ends before it or no consume queue contains it."""


class RecordLost(UnreadableRecord, CorruptRecord):
    """Raised if a record will never be readable, because it has expired, is damaged, or never existed."""


class StoreLocked(StoreError):
    """Raised if another broker has the store open."""


class DamagedStore(StoreError):
    """Raised if the store cannot be opened without the risk of losing messages. An operator must examine it."""
