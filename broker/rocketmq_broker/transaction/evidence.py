"""Finds transactions that are decided although their op message is missing, because their committed or discarded message exists.

A broker may stop after it stored a committed message, and before it stored the op message. After the restart, the message must
not be delivered again. But wrong evidence would close an undecided transaction, so only fields that no client can set count as
evidence:

- A committed message has the offset of its half message in preparedTransactionOffset, which no request can set.
- A discarded message is in TRANS_CHECK_MAX_TIME_TOPIC, to which no client can send. This broker also sets
  preparedTransactionOffset in it. RocketMQ does not.
- Both have the born host of the half message, which the broker sets.

Values that clients choose, such as ids, groups and times, do not count as evidence.
"""

from collections.abc import Callable, Iterable

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.transaction.copies import Identity, identity_of
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage, read_any_message
from rocketmq_broker.transaction.recovery import RecoveredTransaction
from rocketmq_broker.transaction.states import State

HalfAt = Callable[[int], HalfMessage | None]
"""A function that returns the message at a commit log offset, or None if no consume queue contains such a message."""


class Evidence:
    """Searches records for evidence that undecided transactions are decided. The result is in `states`."""

    def __init__(self, undecided: Iterable[RecoveredTransaction], half_at: HalfAt) -> None:
        self._half_at = half_at
        self._by_offset: dict[int, RecoveredTransaction] = {}
        self._by_identity: dict[Identity, list[RecoveredTransaction]] = {}
        for recovered in undecided:
            for commit_log_offset in recovered.commit_log_offsets:
                self._by_offset[commit_log_offset] = recovered
            self._by_identity.setdefault(recovered.identity, []).append(recovered)
        self.states: dict[int, State] = {}
        """The final states of the transactions with evidence, keyed by commit log offset."""

    def consider(self, data: bytes) -> None:
        """Examines a record of any topic for evidence. Ignores damaged records."""
        try:
            message = read_any_message(data)
        except CorruptRecord:
            return
        if message.topic == DISCARD_TOPIC:
            recovered, state = self._discarded(message), State.DISCARDED
        elif message.topic != HALF_TOPIC and message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE:
            recovered, state = self._committed(message), State.COMMITTED
        else:
            return
        if recovered is not None:
            self.states[recovered.transaction.commit_log_offset] = state

    def _committed(self, message: HalfMessage) -> RecoveredTransaction | None:
        half_at = message.prepared_transaction_offset
        recovered = self._by_offset.get(half_at) or self._of_unread_copy(half_at)
        if recovered is None or message.topic != recovered.transaction.topic or not half_at < message.commit_log_offset:
            return None
        return recovered if _may_be_of(message, recovered) else None

    def _discarded(self, message: HalfMessage) -> RecoveredTransaction | None:
        if message.prepared_transaction_offset:
            named = self._by_offset.get(message.prepared_transaction_offset)
            candidates = [named] if named is not None else []
        else:
            candidates = self._by_identity.get(identity_of(message), [])
        for recovered in candidates:
            # A half message that is stored after the discarded message was resumed from it.
            if recovered.transaction.stored_at < message.commit_log_offset and _may_be_of(message, recovered):
                return recovered
        return None

    def _of_unread_copy(self, commit_log_offset: int) -> RecoveredTransaction | None:
        """Returns the transaction of the half message at `commit_log_offset`, or None if the transaction has no unread copies.

        Recovery does not read the oldest copies of a half message.
        """
        half = self._half_at(commit_log_offset)
        if half is None or half.topic != HALF_TOPIC:
            return None
        found = self._by_identity.get(identity_of(half), [])
        return next((recovered for recovered in found if recovered.has_unread_copies), None)


def _may_be_of(message: HalfMessage, recovered: RecoveredTransaction) -> bool:
    if recovered.transaction_id is None:
        return message.transaction_id is None and message.producer_group == recovered.transaction.producer_group
    return identity_of(message) == recovered.identity
