"""Exceptions about transactional messages."""

from rocketmq_broker.message.errors import IllegalMessage


class TransactionError(Exception):
    """Base class of the errors of this package."""


class NotAHalfMessage(TransactionError):
    """The record is not a half message, or has no valid destination."""


class DelayedTransaction(TransactionError, IllegalMessage):
    """The message is both delayed and transactional."""


class NotADestination(TransactionError, IllegalMessage):
    """The topic does not accept transactional messages: it is a system, retry or dead-letter topic."""


class HalfMessageUnreadable(TransactionError):
    """The half message of a pending transaction cannot be read."""


class NotWrittenYet(HalfMessageUnreadable):
    """The half message is not yet written to the files. Try again in a moment."""


class HalfMessageLost(HalfMessageUnreadable):
    """The half message is damaged and can never be read again."""


class HalfMessageExpired(HalfMessageLost):
    """The half message was deleted with its commit log file."""


class NotAnOpMessage(TransactionError):
    """The record in the op topic does not refer to a half message."""


class NotResumable(TransactionError):
    """The message cannot be resumed: it was not discarded, or was already resumed or delivered."""


class AlreadyResumed(NotResumable):
    """The discarded message was already resumed or delivered, so no operator has to handle it."""
