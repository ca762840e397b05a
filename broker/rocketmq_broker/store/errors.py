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
    """Base of the errors of this package. IllegalMessage and CorruptRecord are the message package's."""


class StoreUnwritable(StoreError):
    """A refusal to store, because the disk is full, read-only or failing. No part of the refused message is stored."""


class UnreadableRecord(StoreError):
    """An offset at which no record can be read; the two classes below tell whether asking again can help."""


class RecordNotFound(UnreadableRecord):
    """A missing record: the commit log ends before it, or no queue shows the message."""


class RecordLost(UnreadableRecord, CorruptRecord):
    """A record that will never be intact: it expired, is damaged, or never existed."""


class StoreLocked(StoreError):
    """A store that another broker has open."""


class DamagedStore(StoreError):
    """A store that cannot be opened without guesses that could lose messages: a person must examine it."""
