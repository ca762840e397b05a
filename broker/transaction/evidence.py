"""What shows that a transaction is decided although no op message says so: the message that was made of its half message.

A broker that dies between a committed message and its op message must not deliver the message again. But a wrong piece of
evidence closes a transaction that nobody decided. So only that counts which nobody but a broker can have written:

- A committed message names its half message in preparedTransactionOffset, which no request can set.
- A discarded message lies in TRANS_CHECK_MAX_TIME_TOPIC, to which nobody can send. Ours names its half message as well;
  RocketMQ's names none.
- Both have the born host of the half message, which is the address that the broker saw.

What a client can choose, ids, groups and times, settles nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.message import sysflag
from broker.message.errors import CorruptRecord
from broker.transaction.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage, read_any_message
from broker.transaction.pending import Outcome
from broker.transaction.recovered_copies import Identity
from broker.transaction.recovery import RecoveredTransaction

HalfAt = Callable[[int], HalfMessage | None]
"""Reads the message at a commit log offset; None if none of a queue's messages is there."""


class Evidence:
    """Finds out which of the undecided transactions are decided after all: their message was committed or discarded."""

    def __init__(self, undecided: Iterable[RecoveredTransaction], half_at: HalfAt) -> None:
        self._half_at = half_at
        self._by_offset: dict[int, RecoveredTransaction] = {}
        self._by_identity: dict[Identity, list[RecoveredTransaction]] = {}
        for recovered in undecided:
            offsets = (recovered.transaction.commit_log_offset, *(offset for offset, _ in recovered.aliases))
            self._by_offset.update(dict.fromkeys(offsets, recovered))
            self._by_identity.setdefault(recovered.identity, []).append(recovered)
        self.outcomes: dict[int, Outcome] = {}
        """What was found, by the transaction's commit log offset."""

    def consider(self, data: bytes) -> None:
        """Takes a record into account; one of any topic, damaged or not."""
        try:
            message = read_any_message(data)
        except CorruptRecord:
            return
        if message.topic == DISCARD_TOPIC:
            recovered, outcome = self._discarded(message), Outcome.DISCARDED
        elif message.topic != HALF_TOPIC and message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT:
            recovered, outcome = self._committed(message), Outcome.COMMITTED
        else:
            return
        if recovered is not None:
            self.outcomes[recovered.transaction.commit_log_offset] = outcome

    def _committed(self, message: HalfMessage) -> RecoveredTransaction | None:
        half_offset = message.prepared_transaction_offset
        recovered = self._by_offset.get(half_offset) or self._of_older_copy(half_offset)
        if recovered is None or message.topic != recovered.transaction.topic or not half_offset < message.commit_log_offset:
            return None
        return recovered if _may_be_of(message, recovered) else None

    def _discarded(self, message: HalfMessage) -> RecoveredTransaction | None:
        if message.prepared_transaction_offset:
            named = self._by_offset.get(message.prepared_transaction_offset)
            candidates = [named] if named is not None else []
        else:
            candidates = self._by_identity.get(message.identity, [])
        for recovered in candidates:
            # One stored later was made from the discarded message: it was resumed.
            if recovered.transaction.stored_at < message.commit_log_offset and _may_be_of(message, recovered):
                return recovered
        return None

    def _of_older_copy(self, half_offset: int) -> RecoveredTransaction | None:
        """The transaction of which RocketMQ wrote a copy there, and later ones that alone were read."""
        half = self._half_at(half_offset)
        if half is None or half.topic != HALF_TOPIC:
            return None
        found = self._by_identity.get(half.identity, [])
        return next((recovered for recovered in found if recovered.has_older_copies), None)


def _may_be_of(message: HalfMessage, recovered: RecoveredTransaction) -> bool:
    if recovered.transaction_id is None:
        return message.transaction_id is None and message.producer_group == recovered.transaction.producer_group
    return message.identity == recovered.identity
