"""The barrier of a transaction, and the memory of what a consumer has done: two tables for a program's own database.

A local transaction writes COMMITTED into its row of `rocketmq_transactions`, together with its own work. A check-back that finds
no row writes ROLLED_BACK, and answers ROLLBACK after that. Both rows have the same key, the transaction id, so the second writer
finds the first: a slow local transaction cannot store its work after its message was rolled back. A consumer writes the key of
each message into `rocketmq_consumed`, together with its own work: a message that comes twice is done once.

`databases.sqlalchemy` has the calls for SQLAlchemy and SQLModel, `databases.django` those for Django's ORM. This module is what
both share.
"""

from enum import StrEnum
from typing import Final

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt

MAX_CHARACTERS: Final = 255
"""The longest key of a message, and the longest name of a consumer, in the table of consumed messages."""


class LocalOutcome(StrEnum):
    """The state of a local transaction, in its row. Only COMMITTED and ROLLED_BACK are final."""

    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    PENDING = "PENDING"
    """The work is stored and waits, as an order waits for its payment: check-backs are answered UNKNOWN until it is concluded."""


_DECISIONS: Final = {
    LocalOutcome.COMMITTED: LocalTransactionState.COMMIT_MESSAGE,
    LocalOutcome.ROLLED_BACK: LocalTransactionState.ROLLBACK_MESSAGE,
    LocalOutcome.PENDING: LocalTransactionState.UNKNOWN,
}


class DecidedBefore(Exception):
    """The transaction has a row already: a check-back rolled it back, or it ran before. Nothing is written."""

    def __init__(self, transaction_id: str) -> None:
        """Says which transaction."""
        super().__init__(
            f"transaction {transaction_id} was decided before its local transaction wrote: its work must not be stored"
        )


def decision_of(state: str) -> LocalTransactionState:
    """Returns the answer to the broker for the state in a transaction's row. Raises ValueError for an unknown state."""
    return _DECISIONS[LocalOutcome(state)]


def transaction_id_of(message: Message) -> str:
    """Returns the id of the message's transaction. Raises ValueError for a message that was not sent in one."""
    if message.transaction_id is None:
        raise ValueError("the message has no transaction id: a barrier takes the message that a transaction listener is given")
    return message.transaction_id


def key_of(message: MessageExt | str, consumer: str, key: str | None) -> str:
    """Returns `key`, else the message's id from its producer, which is the same in each delivery. A str is a key itself.

    Raises ValueError for a key or a name of a consumer that is empty or longer than its column.
    """
    if key is None:
        key = message if isinstance(message, str) else message.message_id
    for what, text in (("consumer", consumer), ("key", key)):
        if not 0 < len(text) <= MAX_CHARACTERS:
            raise ValueError(f"the {what} of a consumed message has 1 to {MAX_CHARACTERS} characters, not {len(text)}")
    return key
