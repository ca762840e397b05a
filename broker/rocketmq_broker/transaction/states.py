"""The states of a transaction, and the verbs that lead from one state to another. Each verb appends records to the commit log.

    a message ── prepare ──► PENDING ──┬── commit ─────► COMMITTED
                 half        ▲   │     │   message, op
                             └───┘     ├── roll back ──► ROLLED_BACK
                            put back   │   op
                            half, op   ├── discard ────► DISCARDED ── resume ──► PENDING
                                       │   discarded, op              half       (a new transaction)
                                       └── lose ───────► LOST
                                           op

- half: a half message, in RMQ_SYS_TRANS_HALF_TOPIC. The one that `put back` appends is a copy of the half message, nearer to
  the queue's end; its op message closes the copy before.
- op: an op message, in RMQ_SYS_TRANS_OP_HALF_TOPIC. It closes one half message.
- message: the message as consumers get it, in its own topic.
- discarded: the message in TRANS_CHECK_MAX_TIME_TOPIC, where operators find it.

The records of one verb are appended in the order shown, in one batch. A state counts as soon as they are appended; where they do
not reach the disk, the transaction goes back to the state before. A check-back appends nothing and changes no state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple


class State(Enum):
    """The state of a transaction; the value is for operators."""

    PENDING = "pending"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    DISCARDED = "discarded"
    """No producer decided in time: the message waits for an operator."""
    LOST = "lost"
    """Ended without a decision: the half message expired or is damaged, and can never be read again."""


class Verb(Enum):
    """The verbs that change the state of a transaction: the methods of TransactionalMessages."""

    PREPARE = "prepare"
    COMMIT = "commit"
    ROLL_BACK = "roll_back"
    DISCARD = "discard"
    LOSE = "lose"
    PUT_BACK = "put_back"
    RESUME = "resume"


class Written(Enum):
    """A kind of record in the commit log."""

    HALF_MESSAGE = "half message"
    OP_MESSAGE = "op message"
    MESSAGE = "message"
    DISCARDED_MESSAGE = "discarded message"


class Transition(NamedTuple):
    """The effect of a verb."""

    before: State | None
    """The state that the verb needs; None for a message that is no transaction yet."""
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
"""The picture above, for tests that compare TransactionalMessages with it."""
