"""Finds pending and decided transactions for operators, by transaction id, key or commit log offset of a half message."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.server.transactions.transaction_bridge import message_at
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.store import MessageStore, UnreadableRecord
from rocketmq_broker.transaction.copies import identity_of
from rocketmq_broker.transaction.errors import HalfMessageUnreadable, NotAnOpMessage
from rocketmq_broker.transaction.messages.half_message import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    HalfMessage,
    read_any_message,
    read_half_message,
)
from rocketmq_broker.transaction.messages.op_message import GIVEN_REASON_KEY, OP_TOPIC, decided_offsets
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State

_MAX_OPS_READ: Final = 1000
"""The maximum number of op messages that are read for one response, to find the times of rollbacks.

Reading this number of messages takes a few milliseconds.
"""


@dataclass(frozen=True, slots=True)
class FoundPending:
    """A pending transaction and its half message."""

    transaction: PendingTransaction
    half: HalfMessage | None
    """The half message, or None if it is unreadable. In that case `problem` contains the reason."""
    problem: str | None = None

    @property
    def commit_log_offset(self) -> int:
        """The commit log offset of the first half message."""
        return self.transaction.commit_log_offset


@dataclass(frozen=True, slots=True)
class FoundDecided:
    """A decided transaction, and its records that are still in the store."""

    commit_log_offset: int
    """The commit log offset of the first half message, or -1 if it is unknown."""
    state: State | None
    """The state after the decision, or None if it is unknown."""
    half: HalfMessage | None = None
    made: HalfMessage | None = None
    """The committed or discarded message that the broker stored for the half message."""
    op: HalfMessage | None = None
    """The op message that closed the half message.

    None unless the op message contains a reason, or the transaction was rolled back soon after the half message.
    """
    problem: str | None = None


Found = FoundPending | FoundDecided


class TransactionFinder:
    """Searches the table of pending transactions, the index and the commit log. Changes nothing."""

    def __init__(self, messages: TransactionalMessages, store: MessageStore) -> None:
        self._messages = messages
        self._store = store

    @property
    def can_search(self) -> bool:
        """True if transactions can be found by id or key. This requires an index."""
        return self._store.config.is_index_enabled

    def finds_all(self, transaction_id: str) -> bool:
        """Returns True if an index query for this id finds all its half messages.

        A query returns a limited number of messages, but clients may send more messages with the same id.
        """
        return self._store.query(HALF_TOPIC, transaction_id).are_all

    def pending_by_id(self, transaction_id: str) -> list[PendingTransaction]:
        """Returns the pending transactions with this id. There are two if a producer sent a message twice."""
        found = [self._pending(half) for half in self._halves(transaction_id) if half.transaction_id == transaction_id]
        return list(dict.fromkeys(transaction for transaction in found if transaction is not None))

    def pending_by_offset(self, commit_log_offset: int) -> PendingTransaction | None:
        """Returns the pending transaction with a half message, or a copy of it, at `commit_log_offset`.

        Returns None if there is none.
        """
        table = self._messages.table
        transaction = table.find(commit_log_offset)
        if transaction is None and (copy := table.copies.find(commit_log_offset)) is not None:
            return copy[0]
        return transaction

    def by_word(self, word: str) -> list[Found]:
        """Returns all transactions with this id or key, oldest first."""
        return self._found(self._halves(word))

    def by_offset(self, commit_log_offset: int) -> list[Found]:
        """Returns the transaction with a half message, or a copy of it, at `commit_log_offset`.

        Returns an empty list if there is none.
        """
        transaction = self.pending_by_offset(commit_log_offset)
        if transaction is not None:
            return [self.found_pending(transaction)]
        half = self._half_at(commit_log_offset)
        if half is None or half.topic != HALF_TOPIC:
            return []
        copies = [copy for copy in self._halves(half.transaction_id or "") if identity_of(copy) == identity_of(half)]
        return self._found(copies or [half])

    def with_reason(self, before_ms: int, max_count: int) -> list[FoundDecided]:
        """Returns the transactions that operators decided or that were lost, latest first. Their op messages contain a reason.

        Reads at most `max_count` op messages with a reason, stored at or before `before_ms` (milliseconds since the epoch).
        """
        records = self._store.query(OP_TOPIC, GIVEN_REASON_KEY, max_count, end_ms=before_ms).records
        ops = sorted(map(read_any_message, records), key=lambda op: op.store_timestamp, reverse=True)
        return [decided for op in ops for decided in self._closed_by(op)]

    def found_pending(self, transaction: PendingTransaction) -> FoundPending:
        """Returns the transaction with its half message.

        If the half message is unreadable, sets `problem` instead of raising an exception.
        """
        try:
            return FoundPending(transaction, self._messages.read(transaction))
        except HalfMessageUnreadable as error:
            return FoundPending(transaction, None, str(error))

    def _found(self, halves: Iterable[HalfMessage]) -> list[Found]:
        """Returns the transactions of these half messages, without duplicates."""
        pending: dict[int, PendingTransaction] = {}
        decided: dict[object, list[HalfMessage]] = {}
        for half in halves:
            transaction = self._pending(half)
            if transaction is not None:
                pending[transaction.commit_log_offset] = transaction
            else:
                decided.setdefault(identity_of(half), []).append(half)
        found: list[Found] = [self.found_pending(transaction) for transaction in pending.values()]
        found += [self._found_decided(copies, max_ops=_MAX_OPS_READ // len(decided)) for copies in decided.values()]
        return sorted(found, key=lambda one: one.commit_log_offset)

    def _found_decided(self, copies: list[HalfMessage], op: HalfMessage | None = None, max_ops: int = 0) -> FoundDecided:
        """Returns the transaction of these half messages. `op` is the op message that closed the transaction, if known.

        For a rollback without a reason, reads at most `max_ops` op messages to find the time of the rollback, which is not stored
        elsewhere.
        """
        first = min(copies, key=lambda half: half.commit_log_offset)
        made, is_certain = self._made_from(first)
        state: State | None = State.ROLLED_BACK
        if made is not None:
            state = State.DISCARDED if made.topic == DISCARD_TOPIC else State.COMMITTED
        elif not is_certain:
            state = None
        problem = None if is_certain else "the decision is unknown: too many messages have this transaction id"
        state = self._messages.table.ended.state_of(first.commit_log_offset) or state
        if op is None:
            ops = [self._op_with_reason(copy.queue_offset) for copy in copies]
            op = next((found for found in reversed(ops) if found is not None), None)
            if op is None and state is State.ROLLED_BACK:
                op = self._op_soon_after(max(copies, key=lambda half: half.commit_log_offset), max_ops)
        return FoundDecided(first.commit_log_offset, state, first, made, op, problem)

    def _closed_by(self, op: HalfMessage) -> list[FoundDecided]:
        try:
            queue_offsets = decided_offsets(op)
        except NotAnOpMessage:
            return []
        return [self._closed_half(queue_offset, op) for queue_offset in queue_offsets]

    def _closed_half(self, queue_offset: int, op: HalfMessage) -> FoundDecided:
        commit_log_offset = self._store.commit_log_offset(HALF_TOPIC, 0, queue_offset)
        half = self._half_at(commit_log_offset) if commit_log_offset is not None else None
        if half is not None:
            return self._found_decided([half], op)
        problem = "the half message is no longer in the store"
        return FoundDecided(-1 if commit_log_offset is None else commit_log_offset, None, op=op, problem=problem)

    def _op_with_reason(self, half_queue_offset: int) -> HalfMessage | None:
        found = self._store.query(OP_TOPIC, str(half_queue_offset)).records
        ops = [op for op in map(read_any_message, found) if op.body == b"%d" % half_queue_offset]
        return ops[-1] if ops else None

    def _op_soon_after(self, half: HalfMessage, max_ops: int) -> HalfMessage | None:
        """Returns the op message that closed the half message.

        Reads at most `max_ops` op messages after the half message. Returns None if none of them closed it.
        """
        first = self._store.first_after(OP_TOPIC, 0, half.commit_log_offset)
        for unit in self._store.consume_queue_units(OP_TOPIC, 0, first, max_ops) or []:
            try:
                op = read_any_message(self._store.read(unit.commit_log_offset))
                if half.queue_offset in decided_offsets(op):
                    return op
            except (UnreadableRecord, CorruptRecord, NotAnOpMessage):
                continue
        return None

    def _made_from(self, half: HalfMessage) -> tuple[HalfMessage | None, bool]:
        """Returns the message that was committed or discarded for the half message, and whether the result is certain."""
        if half.transaction_id is None:
            return None, True
        is_certain = True
        for topic in ((props.find(half.properties, props.REAL_TOPIC) or "").encode(), DISCARD_TOPIC):
            found = self._store.query(topic, half.transaction_id)
            is_certain = is_certain and found.are_all
            for message in map(read_any_message, found.records):
                is_made = topic == DISCARD_TOPIC or message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE
                if is_made and identity_of(message) == identity_of(half):
                    return message, True
        return None, is_certain

    def _pending(self, half: HalfMessage) -> PendingTransaction | None:
        named = half.prepared_transaction_offset  # a copy that was put back contains the offset of its first half message
        return self.pending_by_offset(max(named, 0) if named else half.commit_log_offset)

    def _halves(self, word: str) -> list[HalfMessage]:
        """Returns the half messages with this transaction id or key."""
        found = [read_half_message(record) for record in self._store.query(HALF_TOPIC, word).records]
        return [half for half in found if word == half.transaction_id or word in half.keys]

    def _half_at(self, commit_log_offset: int) -> HalfMessage | None:
        half = message_at(self._store, commit_log_offset)
        return half if half is not None and half.topic in (HALF_TOPIC, DISCARD_TOPIC) else None
