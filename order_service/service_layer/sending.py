"""Sends a message in a transaction and waits for the outcome."""

import logging
from typing import Protocol

from order_service.domain.history import PROPERTY, Witness
from order_service.service_layer.attempt import Attempt, AttemptProgress, Outcome, TransactionFailed
from rocketmq_broker.message import Message

logger = logging.getLogger(__name__)


class OutcomePending(Exception):
    """The outcome was not known before the time-out."""


class TransactionalSender(Protocol):
    """The interface that sends transactional messages to the broker."""

    def send_in_transaction(self, message: Message, attempt: Attempt) -> None:
        """Sends the half message, runs the local transaction, and sends COMMIT or ROLLBACK to the broker.

        `attempt` is the argument of the local transaction. Raises TransactionFailed if it did not start, and OutcomePending if
        it may still be running.
        """


def half_message_not_stored(attempt: Attempt, error: Exception) -> TransactionFailed:
    """Logs the error and returns an exception for the caller, with the outcome NOT_STARTED."""
    logger.warning("order %s: the half message could not be sent: %s", attempt.wanted.order_id, error)
    return TransactionFailed(
        Outcome.NOT_STARTED, "the broker is unreachable or did not store the half message; nothing was ordered or changed"
    )


def send_attempt(sender: TransactionalSender, message: Message, attempt: Attempt, witness: Witness) -> AttemptProgress:
    """Sends the message and returns the attempt's progress. If the time-out expired, the attempt may still be running.

    `witness`, the state of the order database, is added to the half message for check-backs. Raises TransactionFailed if the half
    message was not stored.
    """
    try:
        sender.send_in_transaction(message.with_properties({PROPERTY: witness.encode()}), attempt)
    except TransactionFailed:
        progress = attempt.progress
        if progress.outcome is Outcome.NOT_STARTED:
            raise
        return progress
    except OutcomePending:
        progress = attempt.progress
        return AttemptProgress(Outcome.UNKNOWN) if progress.outcome is Outcome.NOT_STARTED else progress
    return attempt.progress
