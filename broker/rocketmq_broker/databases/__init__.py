"""A transaction barrier and idempotent consumption, with two tables in the application's database.

A local transaction writes COMMITTED into its row of `rocketmq_transactions`, in the same database transaction as
its work. If a check-back finds no row, it writes ROLLED_BACK and then returns ROLLBACK. Both rows have the same
key, the transaction id, so only the first one can be written. For example, a slow local transaction cannot store
its work after its message was rolled back. A consumer writes the key of each message into `rocketmq_consumed`, in
the same database transaction as its work. Therefore, a message that is delivered twice is processed only once.

The functions for SQLAlchemy and SQLModel are in `databases.sqlalchemy`, and those for Django's ORM are in
`databases.django`. This module contains the code that both modules use.
"""

from enum import StrEnum
from typing import Final

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt

MAX_CHARACTERS: Final = 255
"""The maximum length of a message key and of a consumer name in the table of consumed messages."""


class LocalOutcome(StrEnum):
    """The state of a local transaction in its row. COMMITTED and ROLLED_BACK are final."""

    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    PENDING = "PENDING"
    """The work is stored but not concluded, such as an order that is not paid yet. Check-backs are answered UNKNOWN."""


_DECISIONS: Final = {
    LocalOutcome.COMMITTED: LocalTransactionState.COMMIT_MESSAGE,
    LocalOutcome.ROLLED_BACK: LocalTransactionState.ROLLBACK_MESSAGE,
    LocalOutcome.PENDING: LocalTransactionState.UNKNOWN,
}


class DecidedBefore(Exception):
    """Raised if the transaction already has a row, because a check-back rolled it back or it ran before. Nothing is written."""

    def __init__(self, transaction_id: str) -> None:
        """`transaction_id` appears in the error's message."""
        super().__init__(f"transaction {transaction_id} is already decided: the work of its local transaction must not be stored")


def decision_of(state: str) -> LocalTransactionState:
    """Returns the decision to send to the broker for the state in a transaction's row. Raises ValueError for an unknown state."""
    return _DECISIONS[LocalOutcome(state)]


def transaction_id_of(message: Message) -> str:
    """Returns the message's transaction id. Raises ValueError if the message was not sent in a transaction."""
    if message.transaction_id is None:
        raise ValueError("the message has no transaction id: pass the message that the transaction listener received")
    return message.transaction_id


def key_of(message: MessageExt | str, consumer: str, key: str | None) -> str:
    """Returns `key`, or by default the message's unique id, which is the same in each delivery.

    If `message` is a str, it is the key.

    Raises ValueError if the key or the consumer name is empty or longer than its column.
    """
    if key is None:
        key = message if isinstance(message, str) else message.message_id
    check_length("consumer of a consumed message", consumer)
    check_length("key of a consumed message", key)
    return key


def check_length(what: str, text: str) -> None:
    """Raises ValueError if the text is empty or longer than its column."""
    if not 0 < len(text) <= MAX_CHARACTERS:
        raise ValueError(f"the {what} must have 1 to {MAX_CHARACTERS} characters, not {len(text)}")
