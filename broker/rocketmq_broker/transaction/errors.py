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
    """The half message of a pending transaction cannot be read."""


class NotWrittenYet(HalfMessageUnreadable):
    """The half message is not yet in the files: try again in a moment."""


class HalfMessageLost(HalfMessageUnreadable):
    """The half message is damaged: it can never be read again."""


class HalfMessageExpired(HalfMessageLost):
    """The half message was deleted with the commit log file that held it."""


class NotAnOpMessage(TransactionError):
    """A record of the op topic that names no half message."""


class NotResumable(TransactionError):
    """A message that cannot be resumed: it was not discarded, or has been resumed or delivered already."""


class AlreadyResumed(NotResumable):
    """A discarded message that has been resumed or delivered: no operator needs to look at it."""
