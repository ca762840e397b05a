"""The states of a transaction, and the transitions between them. Each transition appends records to the commit log.

    a message ── prepare ──► PENDING ──┬── commit ─────► COMMITTED
                 half        ▲   │     │   message, op
                             └───┘     ├── roll back ──► ROLLED_BACK
                            put back   │   op
                            half, op   ├── discard ────► DISCARDED ── resume ──► PENDING
                                       │   discarded, op              half       (a new transaction)
                                       └── lose ───────► LOST
                                           op

- half: a half message, in RMQ_SYS_TRANS_HALF_TOPIC. `put back` appends a copy of the half message at the queue's end and an
  op message that closes the previous copy.
- op: an op message, in RMQ_SYS_TRANS_OP_HALF_TOPIC. It closes one half message.
- message: the message for consumers, in its destination topic.
- discarded: the message in TRANS_CHECK_MAX_TIME_TOPIC, for operators.

The records of one transition are appended in the order shown, in one batch. The new state is valid as soon as they are
appended. If they are not written to disk, the transaction returns to the previous state. A check-back appends no records and
changes no state.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """The state of a transaction. The values are shown to operators."""

    PENDING = "pending"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    DISCARDED = "discarded"
    """The transaction ended because no producer decided in time. An operator can resume the message."""
    LOST = "lost"
    """The transaction ended without a decision, because the half message expired or is damaged."""


class Verb(Enum):
    """The operations that change the state of a transaction. Each has the name of a method of TransactionalMessages."""

    PREPARE = "prepare"
    COMMIT = "commit"
    ROLL_BACK = "roll_back"
    DISCARD = "discard"
    LOSE = "lose"
    PUT_BACK = "put_back"
    RESUME = "resume"


class Written(Enum):
    """The kinds of records that transitions append to the commit log."""

    HALF_MESSAGE = "half message"
    OP_MESSAGE = "op message"
    MESSAGE = "message"
    DISCARDED_MESSAGE = "discarded message"


class Transition(NamedTuple):
    """The states before and after an operation, and the records that it appends."""

    before: State | None
    """The state that the operation requires, or None for a message without a transaction."""
    after: State
    appends: tuple[Written, ...]


TRANSITIONS: Final[Mapping[Verb, Transition]] = MappingProxyType(
    {
        Verb.PREPARE: Transition(None, State.PENDING, (Written.HALF_MESSAGE,)),
        Verb.COMMIT: Transition(State.PENDING, State.COMMITTED, (Written.MESSAGE, Written.OP_MESSAGE)),
        Verb.ROLL_BACK: Transition(State.PENDING, State.ROLLED_BACK, (Written.OP_MESSAGE,)),
        Verb.DISCARD: Transition(State.PENDING, State.DISCARDED, (Written.DISCARDED_MESSAGE, Written.OP_MESSAGE)),
        Verb.LOSE: Transition(State.PENDING, State.LOST, (Written.OP_MESSAGE,)),
        Verb.PUT_BACK: Transition(State.PENDING, State.PENDING, (Written.HALF_MESSAGE, Written.OP_MESSAGE)),
        Verb.RESUME: Transition(State.DISCARDED, State.PENDING, (Written.HALF_MESSAGE,)),
    }
)
"""The transitions of the diagram above. Tests compare TransactionalMessages with them."""
