"""The errors of transactional messages."""

from rocketmq_broker.message.errors import IllegalMessage


class TransactionError(Exception):
    """Base of the errors of this package."""


class NotAHalfMessage(TransactionError):
    """A record that is no half message, or one that does not name its destination."""


class DelayedTransaction(TransactionError, IllegalMessage):
    """A message that should be both delayed and transactional."""


class NotADestination(TransactionError, IllegalMessage):
    """A topic that takes no transactional messages: a system, retry or dead-letter topic."""


class HalfMessageUnreadable(TransactionError):
    """A half message of a pending transaction that cannot be read."""


class NotWrittenYet(HalfMessageUnreadable):
    """A half message that is not yet in the files: try again in a moment."""


class HalfMessageLost(HalfMessageUnreadable):
    """A damaged half message, which can never be read again."""


class HalfMessageExpired(HalfMessageLost):
    """A half message that was deleted with its commit log file."""


class NotAnOpMessage(TransactionError):
    """A record of the op topic that names no half message."""


class NotResumable(TransactionError):
    """A message that cannot be resumed: it was not discarded, or has been resumed or delivered already."""


class AlreadyResumed(NotResumable):
    """A discarded message that has been resumed or delivered: no operator needs to look at it."""
