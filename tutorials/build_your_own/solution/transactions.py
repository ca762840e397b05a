"""Stages 6 to 8 and 12: half messages and their outcomes.

    prepare ──► pending ──┬── commit ────► message in its own queue, op message
     half message         ├── roll back ─► op message
                          └── discard ───► message in TRANS_CHECK_MAX_TIME_TOPIC, op message

An op message marks a half message as decided. A half message without an op message is pending, even after a restart.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tutorials.build_your_own.solution import record
from tutorials.build_your_own.solution.message_store import MessageStore
from tutorials.build_your_own.solution.record import Message, Record

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
OWN_TOPICS = frozenset({HALF_TOPIC, OP_TOPIC, DISCARD_TOPIC})
"""The broker's internal topics. Recovery relies on their records, so clients must not send messages to them."""
REMOVE_TAG = "d"


class Refused(Exception):
    """The decision was refused. The exception's text names the reason."""


@dataclass(slots=True)
class Pending:
    """A half message that has not been decided."""

    half: Record
    due_s: float
    """The time in seconds at which the next check-back is due."""
    checks: int = 0
    """The number of check-backs sent so far."""

    @property
    def group(self) -> str:
        """The producer group that decides the transaction."""
        return self.half.property("PGROUP")


class Transactions:
    """The pending half messages, keyed by commit log offset, and the operations that decide them."""

    def __init__(self, store: MessageStore, timeout_s: float) -> None:
        self.pending: dict[int, Pending] = {}
        self.store = store
        self._timeout_s = timeout_s

    def recover(self, records: Iterable[Record]) -> None:
        """Finds the pending half messages among all records of the log."""
        for found in records:
            if found.message.topic == HALF_TOPIC:
                self._begin(found)
            elif found.message.topic == OP_TOPIC:
                self._close(int(found.message.body))
        self._complete(records)

    def prepare(self, message: Message, group: str) -> Record:
        """Stores a message in the half topic, with its original topic and queue in its properties."""
        properties = {"PGROUP": group, **message.properties}
        properties |= {"REAL_TOPIC": message.topic, "REAL_QID": str(message.queue_id)}
        [half] = self.store.append(replace(message, topic=HALF_TOPIC, queue_id=0, properties=properties))
        self._begin(half)
        return half

    def end(self, decision: int, commit_log_offset: int, queue_offset: int, group: str) -> None:
        """Commits or rolls back a transaction. Raises Refused for a second decision."""
        pending = self.pending.get(commit_log_offset)
        if pending is None:
            raise Refused(f"no transaction is pending at commit log offset {commit_log_offset}")
        if pending.half.queue_offset != queue_offset or pending.group != group:
            raise Refused(
                f"the half message at {commit_log_offset} has queue offset {pending.half.queue_offset}, group {pending.group}"
            )
        if decision == record.COMMITTED:
            self.commit(pending)
        elif decision == record.ROLLED_BACK:
            self.roll_back(pending)

    def commit(self, pending: Pending) -> None:
        """Delivers the message and marks the half message as decided.

        One write stores the message and then the op message, so a crash can lose only the op message.
        """
        self.store.append(committed(pending.half), op_message(pending.half))
        del self.pending[pending.half.commit_log_offset]

    def roll_back(self, pending: Pending) -> None:
        """Marks the half message as decided, without delivering a message."""
        self.store.append(op_message(pending.half))
        del self.pending[pending.half.commit_log_offset]

    def discard(self, pending: Pending) -> None:
        """Stage 10: moves an undecided message to TRANS_CHECK_MAX_TIME_TOPIC."""
        self.store.append(discarded(pending), op_message(pending.half))
        del self.pending[pending.half.commit_log_offset]

    def _begin(self, half: Record) -> None:
        self.pending[half.commit_log_offset] = Pending(half, time.monotonic() + self._timeout_s)

    def _close(self, half_queue_offset: int) -> None:
        for offset, pending in list(self.pending.items()):
            if pending.half.queue_offset == half_queue_offset:
                del self.pending[offset]

    def _complete(self, records: Iterable[Record]) -> None:
        """Writes the op messages that a crash has lost.

        A delivered message has the commit log offset of its half message, which is therefore decided.
        """
        for found in records:
            is_outcome = (
                found.message.sys_flag & record.TRANSACTION_BITS == record.COMMITTED or found.message.topic == DISCARD_TOPIC
            )
            if is_outcome and (pending := self.pending.pop(found.message.prepared_transaction_offset, None)) is not None:
                self.store.append(op_message(pending.half))


def committed(half: Record) -> Message:
    """Returns the message to deliver, with all properties of the half message."""
    return replace(
        half.message,
        topic=half.property("REAL_TOPIC"),
        queue_id=int(half.property("REAL_QID")),
        sys_flag=half.message.sys_flag | record.COMMITTED,
        prepared_transaction_offset=half.commit_log_offset,
    )


def discarded(pending: Pending) -> Message:
    """Returns the message for TRANS_CHECK_MAX_TIME_TOPIC, with all properties of the half message."""
    properties = {**pending.half.message.properties, "TRANSACTION_CHECK_TIMES": str(pending.checks)}
    offset = pending.half.commit_log_offset
    return replace(pending.half.message, topic=DISCARD_TOPIC, properties=properties, prepared_transaction_offset=offset)


def op_message(half: Record) -> Message:
    """Returns the op message of a half message. Its body is the half message's queue offset in digits."""
    body = str(half.queue_offset).encode()
    return Message(OP_TOPIC, 0, body, {"TAGS": REMOVE_TAG}, born_timestamp=int(time.time() * 1000), born_host=half.store_host)
