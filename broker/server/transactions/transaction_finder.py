"""Transactions as operators look for them, pending or decided: by transaction id, by key, or by half offset."""

from __future__ import annotations

from collections.abc import Iterable

from broker.message import properties as props
from broker.message import sysflag
from broker.message.errors import CorruptRecord
from broker.message.ids import offset_message_id
from broker.protocol.bodies import TransactionInfo
from broker.server.transactions.transaction_log import TransactionLog
from broker.store import MessageStore, RecordNotFound
from broker.transaction.errors import NotAHalfMessage, NotAnOpMessage
from broker.transaction.half_message import DISCARD_TOPIC, HALF_TOPIC, HalfMessage, read_any_message, read_half_message
from broker.transaction.op_message import GIVEN_REASON_KEY, OP_TOPIC, OUTCOME, REASON, decided_offsets
from broker.transaction.pending import Outcome, PendingTransaction

PENDING = "pending"
DECIDED = "decided"
"""How, cannot be told."""

_FIND_ALL = 64
_EVER_MS = 2**62


class TransactionFinder:
    """Puts together what table, index and commit log know of a transaction. Reads a few records for each, and changes nothing."""

    def __init__(self, log: TransactionLog, store: MessageStore) -> None:
        self._log = log
        self._store = store

    @property
    def can_search(self) -> bool:
        """Whether transactions can be found by id or key: not without an index."""
        return self._store.config.is_index_enabled

    def finds_all(self, transaction_id: str) -> bool:
        """Whether no half messages with that id can be missing from what is found: somebody may send any number of them."""
        return self._store.query(HALF_TOPIC, transaction_id, _FIND_ALL, 0, _EVER_MS).are_all

    def pending_by_id(self, transaction_id: str) -> list[PendingTransaction]:
        """The undecided ones: two of them if a producer sent one message twice."""
        found = [self._pending(half) for half in self._halves(transaction_id) if half.transaction_id == transaction_id]
        return list(dict.fromkeys(transaction for transaction in found if transaction is not None))

    def pending_by_offset(self, half_offset: int) -> PendingTransaction | None:
        """The undecided one whose half message, or a copy of it, lies there."""
        transaction = self._log.table.find(half_offset)
        if transaction is None:
            alias = self._log.table.find_alias(half_offset)
            transaction = alias[0] if alias is not None else None
        return transaction

    def by_word(self, word: str, now_ms: int) -> list[TransactionInfo]:
        """All with that transaction id or key, oldest first."""
        return self._described(self._halves(word), now_ms)

    def by_offset(self, half_offset: int, now_ms: int) -> list[TransactionInfo]:
        """The one whose half message, or a copy of it, lies there; none if there is no half message."""
        transaction = self.pending_by_offset(half_offset)
        if transaction is not None:
            return [self.describe_pending(transaction, now_ms)]
        half = self._half_at(half_offset)
        if half is None or half.topic != HALF_TOPIC:
            return []
        copies = [copy for copy in self._halves(half.transaction_id or "") if copy.identity == half.identity]
        return self._described(copies or [half], now_ms)

    def with_reason(self, before_ms: int, max_count: int) -> list[TransactionInfo]:
        """What was decided by hand, or given up for a reason, until that time; the latest first."""
        records = self._store.query(OP_TOPIC, GIVEN_REASON_KEY, max_count, 0, before_ms).records
        infos = [info for record in records for info in self._describe_op(read_any_message(record))]
        return sorted(infos, key=lambda info: info.decided_ms or 0, reverse=True)

    def describe_pending(self, transaction: PendingTransaction, now_ms: int) -> TransactionInfo:
        """All but whether its producer is online. An unreadable half message is a problem of its own, and no error."""
        policy = self._log.policy
        info = TransactionInfo(
            PENDING,
            transaction.commit_log_offset,
            producer_group=transaction.producer_group,
            topic=transaction.topic.decode(errors="replace"),
            queue_id=transaction.queue_id,
            begun_ms=transaction.begun_ms,
            checks=transaction.checks,
            age_ms=max(0, now_ms - transaction.begun_ms),
            check_max=policy.check_max,
            next_check_in_ms=max(0, transaction.due_ms - now_ms),
        )
        try:
            _add_message(info, self._log.read(transaction))
        except (RecordNotFound, CorruptRecord, NotAHalfMessage) as error:
            info.problem = str(error)
        return info

    def _described(self, halves: Iterable[HalfMessage], now_ms: int) -> list[TransactionInfo]:
        copies: dict[object, list[HalfMessage]] = {}
        for half in halves:
            transaction = self._pending(half)
            copies.setdefault(transaction.commit_log_offset if transaction else half.identity, []).append(half)
        infos = []
        for same in copies.values():
            transaction = self._pending(same[0])
            infos.append(self.describe_pending(transaction, now_ms) if transaction else self._describe_decided(same))
        return sorted(infos, key=lambda info: info.half_offset)

    def _describe_decided(self, copies: list[HalfMessage]) -> TransactionInfo:
        first = min(copies, key=lambda half: half.commit_log_offset)
        info = TransactionInfo(Outcome.ROLLED_BACK.value, first.commit_log_offset, begun_ms=first.store_timestamp)
        info.producer_group = first.producer_group
        _add_message(info, first)
        _add_destination(info, first)
        message, is_certain = self._made_from(first)
        if not is_certain:
            info.state = DECIDED
            info.problem = "too many messages have its transaction id to tell how it was decided"
        if message is not None:
            outcome = Outcome.DISCARDED if message.topic == DISCARD_TOPIC else Outcome.COMMITTED
            info.state = outcome.value
            info.checks = message.check_times
            info.decided_ms = message.store_timestamp
            info.message_id = offset_message_id(message.store_host, message.commit_log_offset)
        outcome_known = self._log.table.outcome(first.commit_log_offset)
        if outcome_known is not None:
            info.state = outcome_known.value
        for copy in copies:
            self._add_reason(info, copy.queue_offset)
        return info

    def _describe_op(self, op: HalfMessage) -> list[TransactionInfo]:
        try:
            queue_offsets = decided_offsets(op)
        except NotAnOpMessage:
            return []
        infos = []
        for queue_offset in queue_offsets:
            half_offset = self._store.commit_log_offset(HALF_TOPIC, 0, queue_offset)
            half = self._half_at(half_offset) if half_offset is not None else None
            info = self._describe_decided([half]) if half is not None else TransactionInfo("", half_offset or -1)
            if half is None:
                info.problem = "the half message is not in the files any more"
            _add_decision(info, op)
            infos.append(info)
        return infos

    def _add_reason(self, info: TransactionInfo, half_queue_offset: int) -> None:
        for record in self._store.query(OP_TOPIC, str(half_queue_offset), _FIND_ALL, 0, _EVER_MS).records:
            op = read_any_message(record)
            if op.body == b"%d" % half_queue_offset:
                _add_decision(info, op)

    def _made_from(self, half: HalfMessage) -> tuple[HalfMessage | None, bool]:
        """The committed or discarded message that the half message became, if there is one, and whether that is certain."""
        if half.transaction_id is None:
            return None, True
        is_certain = True
        for topic in ((props.find(half.properties, props.REAL_TOPIC) or "").encode(), DISCARD_TOPIC):
            found = self._store.query(topic, half.transaction_id, _FIND_ALL, 0, _EVER_MS)
            is_certain = is_certain and found.are_all
            for record in found.records:
                message = read_any_message(record)
                is_made = topic == DISCARD_TOPIC or message.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT
                if is_made and message.identity == half.identity:
                    return message, True
        return None, is_certain

    def _pending(self, half: HalfMessage) -> PendingTransaction | None:
        first = half.first_commit_log_offset
        return self.pending_by_offset(half.commit_log_offset if first is None else first)

    def _halves(self, word: str) -> list[HalfMessage]:
        """Half messages with that transaction id or key."""
        found = [read_half_message(record) for record in self._store.query(HALF_TOPIC, word, _FIND_ALL, 0, _EVER_MS).records]
        return [half for half in found if word == half.transaction_id or word in _keys(half)]

    def _half_at(self, commit_log_offset: int) -> HalfMessage | None:
        try:
            return read_half_message(self._store.read_queued(commit_log_offset))
        except (RecordNotFound, CorruptRecord, NotAHalfMessage):
            return None


def _add_message(info: TransactionInfo, half: HalfMessage) -> None:
    info.transaction_id = half.transaction_id
    info.keys = _keys(half)
    info.tags = props.find(half.properties, props.TAGS)
    info.body_size = len(half.body)
    resumed_from = half.resumed_from
    info.resumed_from = int(resumed_from) if resumed_from is not None and resumed_from.isdigit() else None


def _add_destination(info: TransactionInfo, half: HalfMessage) -> None:
    try:
        topic, info.queue_id = half.destination()
        info.topic = topic.decode(errors="replace")
    except NotAHalfMessage as error:
        info.problem = str(error)


def _add_decision(info: TransactionInfo, op: HalfMessage) -> None:
    info.reason = props.find(op.properties, REASON)
    info.state = props.find(op.properties, OUTCOME) or info.state
    info.decided_ms = op.store_timestamp


def _keys(half: HalfMessage) -> list[str]:
    return (props.find(half.properties, props.KEYS) or "").split()
