"""Changes the states of transactions, with one method for each change (RocketMQ's TransactionalMessageService).

`rocketmq_broker.transaction.states` documents the states, and the records of each change. All records of a change are written in
one batch. A change takes effect when its records are appended. If the batch is lost before it is on disk, `take_back` undoes the
change.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Protocol

from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.topics import is_group, takes_transactions
from rocketmq_broker.server.ports import SystemTopics
from rocketmq_broker.server.transactions.topic_outcomes import TopicOutcomes
from rocketmq_broker.server.transactions.transaction_bridge import TransactionBridge
from rocketmq_broker.store import Appended
from rocketmq_broker.transaction import transitions
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.counts import TransactionCounts
from rocketmq_broker.transaction.decision import EndAction, EndDecision, EndRequest, decide_end, decide_late_end
from rocketmq_broker.transaction.errors import NotADestination, NotResumable
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HalfMessage, find_group
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.recent_half_messages import RecentHalfMessages
from rocketmq_broker.transaction.states import State


class Topics(SystemTopics, Protocol):
    """Creates system topics, and looks up the queues of other topics (TopicTable)."""

    def existing_queue(self, topic: bytes, queue_id: int) -> int:
        """Returns `queue_id`, or another queue if the topic now has fewer queues than when the message was accepted."""


class TransactionalMessages:
    """The pending transactions of a broker, and the methods that change them. Created by `recover_transactions`.

    Iterating yields the pending transactions in the order of the half queue. Each method that changes a transaction, except
    `prepare`, returns the commit log offset after its records. All these methods raise StoreUnwritable, and change nothing in
    that case.
    """

    def __init__(self, table: PendingTransactions, bridge: TransactionBridge, policy: CheckPolicy, topics: Topics) -> None:
        self.table = table
        """The table of pending transactions. Only this package (rocketmq_broker.server.transactions) may use it."""
        self.policy = policy
        self.counts = TransactionCounts()
        self.outcomes: defaultdict[bytes, TopicOutcomes] = defaultdict(TopicOutcomes)
        """The outcomes of each topic's transactions since the start."""
        self._bridge = bridge
        self._topics = topics
        self._recent = RecentHalfMessages()
        self._resumed: dict[int, int] = {}
        """Maps the commit log offset of a resumed message to the offset after its new half message.

        An entry is removed when the half message is durable.
        """
        self._latest_group = ""
        self._known_topics: dict[bytes, bytes] = {}  # one object for each topic, shared by its transactions

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[PendingTransaction]:
        return iter(self.table)

    # State changes

    def prepare(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        """Begins a pending transaction, and stores its message as a half message.

        Raises DelayedTransaction, NotADestination, IllegalMessage.
        """
        topic = self._known_topics.get(message.topic) or self._new_topic(message.topic)
        half = transitions.prepared(message, producer_group)
        group = find_group(half.properties)
        if group != self._latest_group:
            self._latest_group = _acceptable_group(group)
        appended = self._bridge.append_half(half, now_ms)
        self._recent.keep(appended.commit_log_offset, appended.queue_offset, half)
        self._begin(appended, half, topic, message.queue_id, group, now_ms)
        return appended

    def decide(self, request: EndRequest) -> EndDecision:
        """Returns the effect of a producer's END_TRANSACTION. Changes nothing: the caller must commit or roll back."""
        decision = decide_end(self.table, request)
        if decision.action is EndAction.LOOK_UP:
            return decide_late_end(self.table, request, self._bridge.message_at(request.commit_log_offset))
        return decision

    def commit(self, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        """Delivers the message. Raises HalfMessageUnreadable, and leaves the transaction pending in that case."""
        half = self._recent.take(transaction.stored_at, transaction.stored_queue_offset) or self._bridge.read(transaction)
        # The message is appended before its op message. If only the message survives a crash, recovery finds it and adds the op
        # message. In the reverse order the message could be lost.
        self._bridge.append(transitions.committed(half, transaction), now_ms)
        end_position = self._end(transaction, State.COMMITTED, now_ms, reason)
        self.outcomes[transaction.topic].committed(now_ms - transaction.begun_ms)
        return end_position

    def roll_back(self, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        """Closes the half message, so that the message is never delivered."""
        end_position = self._end(transaction, State.ROLLED_BACK, now_ms, reason)
        self.outcomes[transaction.topic].rollbacks += 1
        return end_position

    def discard(self, transaction: PendingTransaction, now_ms: int) -> int:
        """Parks the message for operators. Raises HalfMessageUnreadable, and leaves the transaction pending in that case."""
        half = self._bridge.read(transaction)
        self._topics.read_by_others(DISCARD_TOPIC.decode(), 1)
        self._bridge.append(transitions.discarded(half, transaction), now_ms)
        return self._end(transaction, State.DISCARDED, now_ms)

    def lose(self, transaction: PendingTransaction, now_ms: int) -> int:
        """Closes a half message that is no longer readable. The state of the transaction becomes LOST."""
        return self._end(transaction, State.LOST, now_ms, "the half message cannot be read")

    def put_back(self, transaction: PendingTransaction, now_ms: int, checks: int) -> int:
        """Copies the half message to the end of the half queue, with the number of checks so far.

        Raises HalfMessageUnreadable.
        """
        half = self._bridge.read(transaction)
        copy = self._bridge.append(transitions.put_back(half, transaction, checks), now_ms)
        op = self._bridge.append_op(transaction.stored_queue_offset, now_ms)
        self.table.put_back(transaction, copy, op)
        self.counts.moves += 1
        return op.end_position

    def resume(self, discarded: HalfMessage, now_ms: int) -> int:
        """Begins a new transaction with a discarded message. Raises NotResumable, NotAHalfMessage."""
        if discarded.commit_log_offset in self._resumed:
            raise NotResumable("already being resumed")
        topic, queue_id = discarded.destination()
        queue_id = self._topics.existing_queue(topic, queue_id)
        half = transitions.resumed(discarded)
        appended = self._bridge.append(half, now_ms)
        self._begin(appended, half, self._new_topic(topic), queue_id, discarded.producer_group, now_ms)
        self._resumed[discarded.commit_log_offset] = appended.end_position
        self.counts.resumes += 1
        return appended.end_position

    def _end(self, transaction: PendingTransaction, state: State, now_ms: int, reason: str | None = None) -> int:
        op = self._bridge.append_op(transaction.stored_queue_offset, now_ms, state, reason)
        self.table.end(transaction, state, op)
        return op.end_position

    def _begin(self, appended: Appended, half: InnerMessage, topic: bytes, queue_id: int, group: str, now_ms: int) -> None:
        offset, queue_offset = appended.commit_log_offset, appended.queue_offset
        self.table.add(
            PendingTransaction(
                offset,
                queue_offset,
                offset,
                queue_offset,
                sys.intern(group),
                topic,
                queue_id,
                half.tags_code,
                now_ms,
                self.policy.first_check_due(now_ms, half.properties),
            )
        )

    def _new_topic(self, topic: bytes) -> bytes:
        """Returns the `bytes` object of a topic that all transactions of the topic share. Raises NotADestination."""
        name = topic.decode()
        if not takes_transactions(name):
            raise NotADestination(f"topic[{name}] does not accept transactional messages")
        return self._known_topics.setdefault(topic, topic)

    # For the other modules of this package

    def read(self, transaction: PendingTransaction) -> HalfMessage:
        """Reads the half message of a transaction. Raises NotWrittenYet, HalfMessageLost."""
        return self._bridge.read(transaction)

    @property
    def appended_position(self) -> int:
        """The commit log offset after the last record appended by this object."""
        return self._bridge.appended_position

    def confirm(self, position: int) -> None:
        """Confirms the changes before commit log offset `position`, whose records are as durable as flushDiskType requires."""
        if self._resumed:
            self._resumed = {resumed: end for resumed, end in self._resumed.items() if end > position}
        self.table.confirm(position)

    def take_back(self, position: int) -> None:
        """Undoes the state changes whose records, at or after the commit log offset `position`, are lost."""
        self.counts.take_backs += 1
        self._recent.clear()
        self._resumed = {resumed: end for resumed, end in self._resumed.items() if end <= position}
        self.table.take_back(position)
        self._bridge.take_back(position)


def _acceptable_group(group: str) -> str:
    """Returns the group if it is a legal producer group. Raises IllegalMessage."""
    if not is_group(group):
        raise IllegalMessage(f"illegal producer group {group[:255]!r}: the broker could not check the transaction")
    return group
