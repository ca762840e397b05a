"""What can go wrong with a transactional message."""


class TransactionError(Exception):
    """Base of the errors of this package."""


class NotAHalfMessage(TransactionError):
    """A record that is no half message, or one that does not say where its message belongs."""


class DelayedTransaction(TransactionError):
    """A message that is to be both delayed and transactional: its decision could not be told from its delivery."""


class NotADestination(TransactionError):
    """A topic for which no transaction's message can be: one that the broker alone writes to, a retry or dead-letter topic."""


class NotAnOpMessage(TransactionError):
    """A record of the op topic that names no half message."""


class NotResumable(TransactionError):
    """A message that cannot be checked again: it was not discarded, or has been resumed or delivered already."""


class AlreadyResumed(NotResumable):
    """A discarded message that waits for nobody any more: it has been resumed or delivered."""
