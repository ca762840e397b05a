"""What can go wrong in the store."""

from broker.message.errors import CorruptRecord, IllegalMessage

__all__ = ["CorruptRecord", "DamagedStore", "IllegalMessage", "RecordNotFound", "StoreError", "StoreLocked", "StoreUnwritable"]


class StoreError(Exception):
    """Base of the errors of this package. IllegalMessage and CorruptRecord are the message package's."""


class StoreUnwritable(StoreError):
    """Nothing can be stored now: the disk is full, read-only or failing. Nothing of what was refused is stored."""


class RecordNotFound(StoreError):
    """No record begins at that offset: it was never written, is not visible yet, or has expired."""


class StoreLocked(StoreError):
    """Another broker has the store open."""


class DamagedStore(StoreError):
    """The store cannot be opened as it is, and guessing could lose messages: a person has to look."""
