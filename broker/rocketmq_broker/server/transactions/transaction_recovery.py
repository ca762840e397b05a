"""Recovers TransactionalMessages from a store that this broker or Apache's broker has written."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from rocketmq_broker.message import topics
from rocketmq_broker.message.record import commit_log_offset_of
from rocketmq_broker.server.pulling.queue_records import records_from
from rocketmq_broker.server.transactions.transaction_bridge import TransactionBridge
from rocketmq_broker.server.transactions.transactional_messages import Topics, TransactionalMessages
from rocketmq_broker.store import ConsumerOffsets, MessageStore, StoreUnwritable, UnreadableRecord
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.errors import HalfMessageUnreadable
from rocketmq_broker.transaction.evidence import Evidence
from rocketmq_broker.transaction.messages.half_message import DISCARD_TOPIC, HALF_TOPIC
from rocketmq_broker.transaction.messages.op_message import OP_TOPIC
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.recovery import RecoveredTable, RecoveredTransaction, TransactionRecovery
from rocketmq_broker.transaction.states import State

logger = logging.getLogger(__name__)


def recover_transactions(
    store: MessageStore,
    consumer_offsets: ConsumerOffsets,
    topic_table: Topics,
    policy: CheckPolicy,
    now_ms: int,
    check_counts: Mapping[int, int] | None = None,
) -> TransactionalMessages:
    """Finds the pending transactions, and appends op messages that are missing because of a crash.

    If op messages were appended, `appended_position` of the result is not 0, and the caller must write the store.
    """
    found = _read_queues(store, consumer_offsets, policy, now_ms, check_counts or {})
    bridge = TransactionBridge(store)
    ended = _ended_without_op(store, bridge, found.undecided)
    table = PendingTransactions(
        check_interval_ms=policy.check_interval_ms,
        next_queue_offset=store.next_offset(HALF_TOPIC, 0),
        op_window=found.op_window,
    )
    to_close = list(found.superseded)
    for recovered in found.undecided:
        if recovered.transaction.commit_log_offset in ended:
            to_close.append(recovered.transaction.stored_queue_offset)
        else:
            _add(table, recovered, topic_table)
    table.confirm(store.written_position)
    logger.info("%d transactions are pending; %d more were decided just before the broker stopped", len(table), len(ended))
    for topic in (HALF_TOPIC, OP_TOPIC):
        topic_table.internal(topic.decode(), 1)
    _close(table, bridge, sorted(to_close), now_ms)
    messages = TransactionalMessages(table, bridge, policy, topic_table)
    _put_doubted_back(messages, found.doubted, now_ms)
    return messages


def _read_queues(
    store: MessageStore,
    consumer_offsets: ConsumerOffsets,
    policy: CheckPolicy,
    now_ms: int,
    check_counts: Mapping[int, int],
) -> RecoveredTable:
    """Reads the half queue and the op queue, starting at the consumer offsets of CID_RMQ_SYS_TRANS."""
    first_half = _first_offset(store, consumer_offsets, HALF_TOPIC)
    first_op = _first_offset(store, consumer_offsets, OP_TOPIC)
    recovery = TransactionRecovery(
        policy, now_ms, op_offset=first_op, check_counts=check_counts, is_doubted=partial(_is_behind_damage, store)
    )
    for op in records_from(store, OP_TOPIC, 0, first_op):
        recovery.add_op(op)
    for half in records_from(store, HALF_TOPIC, 0, first_half):
        recovery.add_half(half)
    found = recovery.finish()
    for problem in found.damaged:
        logger.error("skipped a transaction record: %s", problem)
    return found


def _first_offset(store: MessageStore, consumer_offsets: ConsumerOffsets, topic: bytes) -> int:
    """Returns the first offset to read: the group's offset, or the queue's first message if that offset is out of range."""
    offset = consumer_offsets.get(topics.TRANSACTION_CONSUMER_GROUP, topic.decode(), 0)
    first, end = store.min_offset(topic, 0), store.max_offset(topic, 0)
    return offset if offset is not None and first <= offset <= end else first


def _add(table: PendingTransactions, recovered: RecoveredTransaction, topic_table: Topics) -> None:
    transaction = recovered.transaction
    transaction.queue_id = topic_table.existing_queue(transaction.topic, transaction.queue_id)
    table.add(transaction)
    for copy in recovered.copies:
        table.copies.add(transaction, copy)
    if recovered.has_unread_copies:
        table.copies.add_unread(transaction, recovered.identity)


def _close(table: PendingTransactions, bridge: TransactionBridge, half_queue_offsets: list[int], now_ms: int) -> None:
    """Appends the op messages of half messages. If the store is not writable, the next start appends the remaining ones."""
    for count, half_queue_offset in enumerate(half_queue_offsets):
        try:
            op = bridge.append_op(half_queue_offset, now_ms)
        except StoreUnwritable as error:
            logger.warning("cannot close %d half messages until the next start: %s", len(half_queue_offsets) - count, error)
            return
        table.close_copy(half_queue_offset, op)


# Op messages whose committed message may be lost


def _is_behind_damage(store: MessageStore, commit_log_offset: int) -> bool:
    """Returns True if the record before `commit_log_offset`, the offset of an op message, is damaged.

    The damaged record may be the committed message, which is stored directly before its op message.
    """
    begins_segment = commit_log_offset % store.config.commit_log_segment_size == 0
    slack = store.config.commit_log_segment_size if begins_segment else 0  # a blank record may be between them
    return any(0 <= commit_log_offset - (offset + size) <= slack for offset, size in store.recovery.damaged)


def _put_doubted_back(messages: TransactionalMessages, doubted: set[int], now_ms: int) -> None:
    """Puts back pending transactions whose op message may be wrong, because the next start would not detect the damage."""
    for transaction in [transaction for transaction in messages if transaction.stored_queue_offset in doubted]:
        logger.warning(
            "the transaction at commit log offset %d is pending again: its decision may have been lost in a damaged record",
            transaction.commit_log_offset,
        )
        try:
            messages.put_back(transaction, now_ms, transaction.checks)
        except (StoreUnwritable, HalfMessageUnreadable) as error:
            logger.warning(
                "cannot make the transaction at commit log offset %d pending again: %s", transaction.commit_log_offset, error
            )


# Transactions that were decided just before the broker ended


def _ended_without_op(
    store: MessageStore, bridge: TransactionBridge, undecided: Sequence[RecoveredTransaction]
) -> Mapping[int, State]:
    """Finds undecided transactions with a committed or discarded message in the store.

    Searches the index, or reads queues if the index cannot find all messages.
    """
    evidence, ends = Evidence(undecided, bridge.message_at), _ends_of_topics(store, undecided)
    unindexed = [recovered for recovered in undecided if not _consider_indexed(store, evidence, recovered, ends)]
    for topic, queue_id, first in _queues_to_read(unindexed):
        for record in records_from(store, topic, queue_id, store.first_after(topic, queue_id, first)):
            evidence.consider(record)
    return evidence.states


def _ends_of_topics(store: MessageStore, undecided: Sequence[RecoveredTransaction]) -> Mapping[bytes, int]:
    """Returns the end, as a commit log offset, of each topic that may contain an outcome of these transactions."""
    wanted = {topic for recovered in undecided for topic in recovered.outcome_topics}
    return {topic: store.end_of_topic(topic) for topic in wanted}


def _consider_indexed(
    store: MessageStore, evidence: Evidence, recovered: RecoveredTransaction, ends: Mapping[bytes, int]
) -> bool:
    """Reads the messages that the index returns for the transaction id. Returns True if the index returns all of them.

    A committed or discarded message is stored after its half message, so a topic that ends before the half message is not
    searched. Most transactions that are pending at a crash began after the last message of their topic.
    """
    transaction_id = recovered.transaction_id
    begins = recovered.begins
    searched = [topic for topic in recovered.outcome_topics if ends[topic] > begins]
    if not searched:
        return True
    if transaction_id is None or not store.config.is_index_enabled:
        return False
    are_all = True
    for topic in searched:
        found = store.query(topic, transaction_id)
        for record in found.records:
            if _is_in_its_queue(store, record):
                evidence.consider(record)
        are_all = are_all and found.are_all  # if very many messages have this id, the index may omit the relevant one
    return are_all


def _is_in_its_queue(store: MessageStore, record: bytes) -> bool:
    """Returns True if the message is in its consume queue. The index may contain messages that recovery skipped."""
    try:
        store.read_queued(commit_log_offset_of(record))
    except UnreadableRecord:
        return False
    return True


def _queues_to_read(unindexed: list[RecoveredTransaction]) -> list[tuple[bytes, int, int]]:
    """Returns the queues to read for messages of these transactions: topic, queue id, and first commit log offset."""
    first: dict[tuple[bytes, int], int] = {}
    for recovered in unindexed:
        transaction, begins = recovered.transaction, recovered.begins
        for key in ((transaction.topic, transaction.queue_id), (DISCARD_TOPIC, 0)):
            first[key] = min(first.get(key, begins), begins)
    return [(topic, queue_id, begins) for (topic, queue_id), begins in first.items()]
