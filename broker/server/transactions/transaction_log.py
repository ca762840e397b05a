"""What decisions do to the store: each appends its records and tells the table (RocketMQ's TransactionalMessageBridge).

A committed message and the op message that closes its half message go into one batch. Both count once they are appended; where
the batch does not reach the disk, `take_back` says so and the transaction is pending again.
"""

from __future__ import annotations

import logging
import sys
from typing import Protocol

from broker.message import sysflag
from broker.message.errors import CorruptRecord, IllegalMessage
from broker.message.inner_message import InnerMessage
from broker.message.record import body_crc
from broker.message.topics import is_group, takes_transactions
from broker.server.ports import SystemTopics
from broker.server.transactions.topic_outcomes import TopicOutcomes
from broker.server.transactions.transaction_recovery import RecoveredTransactions
from broker.store import Appended, MessageStore, StoreUnwritable
from broker.transaction import transitions
from broker.transaction.check_policy import CheckPolicy
from broker.transaction.counts import TransactionCounts
from broker.transaction.errors import NotADestination, NotResumable
from broker.transaction.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage, find_group, find_tag, read_half_message
from broker.transaction.half_message import tags_code as tags_code_of
from broker.transaction.op_message import OP_PROPERTIES, OP_TAGS_CODE, OP_TOPIC, op_body, op_message
from broker.transaction.pending import Outcome, PendingTransaction, Place
from broker.transaction.recent_half_messages import RecentHalfMessages

logger = logging.getLogger(__name__)


class Topics(SystemTopics, Protocol):
    """Makes topics of the broker's own, and knows which queues the others have (TopicTable)."""

    def existing_queue(self, topic: bytes, queue_id: int) -> int:
        """Where to put a message that was accepted for that queue a while ago."""


class TransactionLog:
    """The table of pending transactions, and the store that backs it."""

    def __init__(
        self,
        store: MessageStore,
        recovered: RecoveredTransactions,
        policy: CheckPolicy,
        topics: Topics,
    ) -> None:
        """`recovered` is what `recover_transactions` found in the store."""
        self.table = recovered.table
        self.copies = recovered.copies
        self.policy = policy
        self.counts = TransactionCounts()
        self.outcomes: dict[bytes, TopicOutcomes] = {}
        """By topic, since the start."""
        self.appended_position = 0
        """The commit log offset after the last record appended here."""
        self._store = store
        self._store_host = store.config.store_host
        self._topics = topics
        self._recent = RecentHalfMessages()
        self._resumed: dict[int, int] = {}
        """Discarded messages resumed a moment ago, which the store does not show yet: where their new half messages end."""
        self._latest_group = ""
        self._known_topics: dict[bytes, bytes] = {}  # as many as there are topics: one object for all its transactions
        for topic in (HALF_TOPIC, OP_TOPIC):
            topics.internal(topic.decode(), 1)
        for transaction in self.table:
            transaction.queue_id = topics.existing_queue(transaction.topic, transaction.queue_id)

    def append_half(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        """Stores a message as a half message.

        Raises DelayedTransaction, NotADestination, IllegalMessage or StoreUnwritable.
        """
        topic = self._known_topics.get(message.topic) or self._new_topic(message.topic)
        encoded = transitions.half_properties(message.properties, topic, message.queue_id, producer_group)
        group = find_group(encoded)
        if group != self._latest_group and not is_group(group):
            raise IllegalMessage(
                f"no producer group can have the name {group[:255]!r}: nobody could be asked about the transaction"
            )
        self._latest_group = group
        tags_code = tags_code_of(find_tag(encoded))
        sys_flag, born_host = transitions.half_sys_flag(message.sys_flag), message.born_host
        crc = body_crc(message.body)
        half_inner = InnerMessage(
            HALF_TOPIC, 0, message.body, encoded, message.flag, sys_flag, message.born_timestamp, born_host,
            message.reconsume_times, 0, tags_code, crc,
        )  # fmt: skip
        appended = self._store.append(half_inner, now_ms)
        offset, queue_offset, _ = appended
        stored_flag = sysflag.with_hosts(sys_flag, born_host, self._store_host)
        half = HalfMessage(
            HALF_TOPIC, queue_offset, offset, message.flag, stored_flag, message.born_timestamp, born_host, now_ms,
            self._store_host, message.reconsume_times, 0, crc, message.body, encoded,
        )  # fmt: skip
        self._recent.keep(half)
        self._add(appended, group, topic, message.queue_id, tags_code, encoded, now_ms)
        self.counts.half_messages += 1
        return appended

    def commit(self, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        """Delivers the message and closes its half message; returns the commit log offset after both.

        Raises RecordNotFound, CorruptRecord, NotAHalfMessage, StoreUnwritable; then the transaction is pending still.
        """
        half = self._recent.take(transaction.stored_at)
        if half is None or half.queue_offset != transaction.stored_queue_offset:
            half = self.read(transaction)
        offset = transaction.commit_log_offset
        self._append(
            transitions.committed(
                half,
                topic=transaction.topic,
                queue_id=transaction.queue_id,
                tags_code=transaction.tags_code,
                half_offset=offset,
                checks=transaction.checks,
            ),
            now_ms,
        )
        end_position = self._settle(transaction, Outcome.COMMITTED, now_ms, reason)
        self._outcomes_of(transaction.topic).committed(now_ms - transaction.begun_ms)
        self.counts.commits += 1
        return end_position

    def roll_back(self, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        """Closes the half message; nobody will see it. Raises StoreUnwritable."""
        end_position = self._settle(transaction, Outcome.ROLLED_BACK, now_ms, reason)
        self._outcomes_of(transaction.topic).rollbacks += 1
        self.counts.rollbacks += 1
        return end_position

    def discard(self, transaction: PendingTransaction, now_ms: int) -> int:
        """Puts the message where people can find it. Raises like `commit`."""
        half = self.read(transaction)
        self._topics.internal(DISCARD_TOPIC.decode(), 1)
        self._append(transitions.discarded(half, half_offset=transaction.commit_log_offset, checks=transaction.checks), now_ms)
        return self._settle(transaction, Outcome.DISCARDED, now_ms, None)

    def give_up(self, transaction: PendingTransaction, now_ms: int) -> int:
        """Closes a half message that cannot be read any more. Raises StoreUnwritable."""
        return self._settle(transaction, Outcome.LOST, now_ms, "the half message cannot be read")

    def move_forward(self, transaction: PendingTransaction, now_ms: int, checks: int) -> int:
        """Copies the half message to the queue's end, with how often it was checked for good. Raises like `commit`."""
        half = self.read(transaction)
        copy = self._append(
            transitions.moved(
                half,
                first_commit_log_offset=transaction.commit_log_offset,
                first_queue_offset=transaction.queue_offset,
                checks=checks,
            ),
            now_ms,
        )
        op = self._append_op(transaction.stored_queue_offset, now_ms, None)
        self.table.move(transaction, _place(copy), _place(op))
        self.counts.moves += 1
        return op.end_position

    def resume(self, discarded: HalfMessage, now_ms: int) -> int:
        """Makes a discarded message a half message again. Raises NotResumable, NotAHalfMessage or StoreUnwritable."""
        if discarded.commit_log_offset in self._resumed:
            raise NotResumable("it is being resumed already")
        topic, queue_id = discarded.destination()
        queue_id = self._topics.existing_queue(topic, queue_id)
        message, tags_code = transitions.resumed(discarded), discarded.tags_code()
        appended = self._append(message, now_ms)
        self._add(appended, discarded.producer_group, self._new_topic(topic), queue_id, tags_code, message.properties, now_ms)
        self._resumed[discarded.commit_log_offset] = appended.end_position
        self.counts.resumes += 1
        return appended.end_position

    def complete(self, recovered: RecoveredTransactions, now_ms: int) -> int:
        """Appends the op messages that a crash left out; returns how many. What cannot be written now, the next start tries."""
        for count, half_queue_offset in enumerate(recovered.to_close):
            try:
                op = self._append_op(half_queue_offset, now_ms, None)
            except StoreUnwritable as error:
                logger.warning("%d half messages cannot be closed now: %s", len(recovered.to_close) - count, error)
                return count
            self.table.close_copy(half_queue_offset, _place(op))
        return len(recovered.to_close)

    def read(self, transaction: PendingTransaction) -> HalfMessage:
        """The half message as it is stored. Raises RecordNotFound, CorruptRecord, NotAHalfMessage."""
        half = read_half_message(self._store.read(transaction.stored_at))
        if half.queue_offset != transaction.stored_queue_offset:
            raise CorruptRecord(f"the half message at {transaction.stored_at} has another queue offset: {half.queue_offset}")
        return half

    def confirm(self, position: int) -> None:
        """Everything appended before that commit log offset stays."""
        if self._resumed:
            self._resumed = {resumed: end for resumed, end in self._resumed.items() if end > position}
        self.table.confirm(position)

    def take_back(self, position: int) -> None:
        """Everything appended from that commit log offset on is lost."""
        self.counts.take_backs += 1
        self._recent.clear()
        self._resumed = {resumed: end for resumed, end in self._resumed.items() if end <= position}
        self.table.take_back(position)
        self.appended_position = min(self.appended_position, position)

    def _new_topic(self, topic: bytes) -> bytes:
        """Raises NotADestination."""
        name = topic.decode()
        if not takes_transactions(name):
            raise NotADestination(f"the topic[{name}] takes no transactional messages")
        return self._known_topics.setdefault(topic, topic)

    def _outcomes_of(self, topic: bytes) -> TopicOutcomes:
        return self.outcomes.get(topic) or self.outcomes.setdefault(topic, TopicOutcomes())

    def _settle(self, transaction: PendingTransaction, outcome: Outcome, now_ms: int, reason: str | None) -> int:
        op = self._append_op(transaction.stored_queue_offset, now_ms, reason, outcome)
        self.table.settle(transaction, outcome, _place(op))
        return op.end_position

    def _append_op(self, half_queue_offset: int, now_ms: int, reason: str | None, outcome: Outcome | None = None) -> Appended:
        if reason is not None:
            decided = outcome.value if outcome is not None else None
            op_with_reason = op_message(
                half_queue_offset, now_ms=now_ms, store_host=self._store_host, reason=reason, outcome=decided
            )
            return self._append(op_with_reason, now_ms)
        body = op_body(half_queue_offset)
        message = InnerMessage(OP_TOPIC, 0, body, OP_PROPERTIES, 0, 0, now_ms, self._store_host, 0, 0, OP_TAGS_CODE)
        op = self._store.append(message, now_ms, may_use_reserve=True)
        self.appended_position = op.end_position
        return op

    def _append(self, message: InnerMessage, now_ms: int) -> Appended:
        appended = self._store.append(message, now_ms, was_accepted=True, may_use_reserve=True)
        self.appended_position = appended.end_position
        return appended

    def _add(
        self, appended: Appended, group: str, topic: bytes, queue_id: int, tags_code: int, encoded: bytes, now_ms: int
    ) -> None:
        offset, queue_offset, end_position = appended
        self.appended_position = end_position
        self.table.add(
            PendingTransaction(
                offset,
                queue_offset,
                offset,
                queue_offset,
                sys.intern(group),
                topic,
                queue_id,
                tags_code,
                now_ms,
                self.policy.first_check_due(now_ms, encoded),
            )
        )


def _place(appended: Appended) -> Place:
    return Place(appended.commit_log_offset, appended.queue_offset)
