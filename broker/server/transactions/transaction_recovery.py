"""The table of pending transactions as a store has them, whichever broker left it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from broker.message import topics
from broker.message.errors import CorruptRecord
from broker.server.pulling.queue_records import records_from
from broker.store import ConsumerOffsets, MessageStore, RecordNotFound
from broker.transaction.check_policy import CheckPolicy
from broker.transaction.evidence import Evidence
from broker.transaction.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage, read_any_message
from broker.transaction.op_message import OP_TOPIC
from broker.transaction.pending import Outcome, PendingTransactions
from broker.transaction.recovered_copies import RecoveredCopies
from broker.transaction.recovery import RecoveredTransaction, TransactionRecovery

logger = logging.getLogger(__name__)

_FIND_ALL = 64
_EVER_MS = 2**62


@dataclass(frozen=True, slots=True)
class RecoveredTransactions:
    """What was found, and what is left to do: `TransactionLog.complete`."""

    table: PendingTransactions
    copies: RecoveredCopies
    to_close: tuple[int, ...]
    """Half queue offsets that want an op message: of older copies, and of messages that were delivered or discarded without."""


def recover_transactions(
    store: MessageStore,
    consumer_offsets: ConsumerOffsets,
    policy: CheckPolicy,
    now_ms: int,
    check_counts: Mapping[int, int] | None = None,
) -> RecoveredTransactions:
    """Reads the half and the op queue from the offsets of CID_RMQ_SYS_TRANS on, and looks for messages delivered already."""
    half_offset = _first_offset(store, consumer_offsets, HALF_TOPIC)
    op_offset = _first_offset(store, consumer_offsets, OP_TOPIC)
    recovery = TransactionRecovery(policy, now_ms, op_offset=op_offset, check_counts=check_counts or {})
    for op in records_from(store, OP_TOPIC, 0, op_offset):
        recovery.add_op(op)
    for half in records_from(store, HALF_TOPIC, 0, half_offset):
        recovery.add_half(half)
    found = recovery.finish()
    for complaint in found.damaged:
        logger.error("passed over a record of a transaction: %s", complaint)
    outcomes = _late_outcomes(store, found.undecided)
    pending = [one for one in found.undecided if one.transaction.commit_log_offset not in outcomes]
    settled = [one.transaction.stored_queue_offset for one in found.undecided if one.transaction.commit_log_offset in outcomes]
    table = PendingTransactions(
        check_interval_ms=policy.check_interval_ms,
        next_queue_offset=store.next_offset(HALF_TOPIC, 0),
        op_window=found.op_window,
    )
    copies = RecoveredCopies()
    for recovered in pending:
        _take_over(recovered, table, copies)
    table.confirm(store.written_position)
    logger.info("%d transactions are pending; %d more were decided just when a broker ended", len(pending), len(settled))
    return RecoveredTransactions(table, copies, tuple(sorted(found.superseded + settled)))


def _take_over(recovered: RecoveredTransaction, table: PendingTransactions, copies: RecoveredCopies) -> None:
    table.add(recovered.transaction)
    for commit_log_offset, queue_offset in recovered.aliases:
        table.add_alias(recovered.transaction, commit_log_offset, queue_offset)
    if recovered.has_older_copies:
        copies.add(recovered.identity, recovered.transaction)


def _first_offset(store: MessageStore, consumer_offsets: ConsumerOffsets, topic: bytes) -> int:
    """Where to begin: at the group's offset, or at the queue's first message if the offset cannot be right."""
    offset = consumer_offsets.get(topics.TRANSACTION_CONSUMER_GROUP, topic.decode(), 0)
    first, end = store.min_offset(topic, 0), store.max_offset(topic, 0)
    return offset if offset is not None and first <= offset <= end else first


def message_at(store: MessageStore, commit_log_offset: int) -> HalfMessage | None:
    """The message of any queue at a place that a client, or another record, names; None if there is none."""
    try:
        return read_any_message(store.read_queued(commit_log_offset))
    except (RecordNotFound, CorruptRecord):
        return None


def _late_outcomes(store: MessageStore, undecided: list[RecoveredTransaction]) -> dict[int, Outcome]:
    evidence = Evidence(undecided, lambda commit_log_offset: message_at(store, commit_log_offset))
    unindexed = []
    for recovered in undecided:
        if recovered.transaction_id is None or not store.config.is_index_enabled:
            unindexed.append(recovered)
            continue
        for topic in (recovered.transaction.topic, DISCARD_TOPIC):
            found = store.query(topic, recovered.transaction_id, _FIND_ALL, 0, _EVER_MS)
            for record in found.records:
                evidence.consider(record)
            if not found.are_all:  # somebody sent many with that id: what is looked for may be behind them
                unindexed.append(recovered)
    for topic, queue_id, first in _queues_to_read(unindexed):
        for record in records_from(store, topic, queue_id, store.first_behind(topic, queue_id, first)):
            evidence.consider(record)
    return evidence.outcomes


def _queues_to_read(unindexed: list[RecoveredTransaction]) -> list[tuple[bytes, int, int]]:
    """The queues where messages may have been delivered that no index knows, and the commit log offset they lie behind."""
    first: dict[tuple[bytes, int], int] = {}
    for recovered in unindexed:
        transaction = recovered.transaction
        begins = min(transaction.commit_log_offset, *(offset for offset, _ in recovered.aliases), transaction.stored_at)
        for key in ((transaction.topic, transaction.queue_id), (DISCARD_TOPIC, 0)):
            first[key] = min(first.get(key, begins), begins)
    return [(topic, queue_id, begins) for (topic, queue_id), begins in first.items()]
