"""Sends a message in a transaction, and returns what is known when the wait is over."""

from typing import Protocol

from order_service.domain.history import PROPERTY, Witness
from order_service.service_layer.attempt import Attempt, Outcome, Progress
from rocketmq_broker.message import Message


class TransactionFailed(Exception):
    """Base of the failures in which nothing is written, now or later."""


class BrokerUnavailable(TransactionFailed):
    """The broker did not store the half message."""


class NotStored(TransactionFailed):
    """The database refused the local transaction."""


class TransactionExpired(TransactionFailed):
    """The local transaction took so long that check-back rolled it back first; the caller may try again."""


class OutcomePending(Exception):
    """The time allowed ended before the outcome was known."""


class TransactionalSender(Protocol):
    """The port to the broker."""

    def send_in_transaction(self, message: Message, attempt: Attempt) -> None:
        """Sends the half message, runs the local transaction with the attempt, and sends the broker COMMIT or ROLLBACK.

        Raises BrokerUnavailable, and OutcomePending if the local transaction may still be running.
        """


def send_attempt(sender: TransactionalSender, message: Message, attempt: Attempt, witness: Witness) -> Progress:
    """Sends the message, and returns the attempt's progress when the wait is over; it may go on after that.

    `witness` is the database's state before: the message names it for the check-back. Raises BrokerUnavailable.
    """
    try:
        sender.send_in_transaction(message.with_properties({PROPERTY: witness.encode()}), attempt)
    except BrokerUnavailable:
        progress = attempt.progress
        if progress.outcome is Outcome.NOT_STARTED:
            raise
        return progress
    except OutcomePending:
        progress = attempt.progress
        return Progress(Outcome.UNKNOWN) if progress.outcome is Outcome.NOT_STARTED else progress
    return attempt.progress


def failure_of(progress: Progress) -> TransactionFailed:
    """Returns the error for a failed outcome of either kind of transaction."""
    match progress.outcome:
        case Outcome.DECIDED_BEFORE:
            return TransactionExpired(progress.outcome.value)
        case Outcome.NOT_STARTED:
            return BrokerUnavailable(progress.outcome.value)
        case _:
            return NotStored(progress.outcome.value)
