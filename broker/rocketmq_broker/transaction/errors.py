"""The errors of the transaction package."""

from rocketmq_broker.message.errors import IllegalMessage


class TransactionError(Exception):
    """Base class of the errors of this package."""


class NotAHalfMessage(TransactionError):
    """Raised if a record is not a half message, or has no valid destination."""


class DelayedTransaction(TransactionError, IllegalMessage):
    """Raised if a message is both delayed and transactional."""


class NotADestination(TransactionError, IllegalMessage):
    """Raised if a topic does not accept transactional messages, because it is a system, retry or dead-letter topic."""


class HalfMessageUnreadable(TransactionError):
    """Raised if the half message of a pending transaction cannot be read."""


class NotWrittenYet(HalfMessageUnreadable):
    """Raised if the half message is not yet written to the files. The caller can try again a moment later."""


class HalfMessageLost(HalfMessageUnreadable):
    """Raised if the half message is damaged and can never be read again."""


class HalfMessageExpired(HalfMessageLost):
    """Raised if the half message was deleted with its commit log file."""


class NotAnOpMessage(TransactionError):
    """Raised if a record in the op topic does not refer to a half message."""


class NotResumable(TransactionError):
    """Raised if a message cannot be resumed, because it was not discarded, or was already resumed or delivered."""


class AlreadyResumed(NotResumable):
    """Raised if a discarded message was already resumed or delivered, so that no operator has to handle it."""
