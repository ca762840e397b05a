"""What operators see of transactions and decide by hand; RocketMQ has nothing like it (its issues 4343, 4435, 4436)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from typing import Final

from broker.message.errors import CorruptRecord
from broker.protocol.bodies import TransactionInfo, TransactionList
from broker.protocol.codes import AdminRequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.headers import (
    DecideTransactionRequestHeader,
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler, RequestRefused
from broker.server.ports import Durability
from broker.server.sending.given_reason import acceptable_reason
from broker.server.transactions.check_back import Producers
from broker.server.transactions.transaction_finder import PENDING, TransactionFinder
from broker.server.transactions.transaction_log import TransactionLog
from broker.store import RecordNotFound
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.errors import NotAHalfMessage
from broker.transaction.pending import PendingTransaction

logger = logging.getLogger(__name__)

LARGEST_PAGE: Final = 1000


class TransactionAdminProcessor:
    """Answers `python -m broker.admin`."""

    def __init__(
        self,
        *,
        log: TransactionLog,
        finder: TransactionFinder,
        producers: Producers,
        checks_in_flight: ChecksInFlight[Connection],
        group_commit: Durability,
        clock: Callable[[], int],
    ) -> None:
        self._log = log
        self._finder = finder
        self._producers = producers
        self._checks_in_flight = checks_in_flight
        self._group_commit = group_commit
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Request code -> method."""
        return {
            AdminRequestCode.LIST_PENDING_TRANSACTIONS: self.list_pending,
            AdminRequestCode.SHOW_TRANSACTION: self.show,
            AdminRequestCode.DECIDE_TRANSACTION: self.decide,
            AdminRequestCode.LIST_DECIDED_TRANSACTIONS: self.list_decided,
        }

    def list_pending(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Pending transactions that match, the oldest first. Reads the half messages of one page, and no others."""
        header = command.decode_header(ListPendingTransactionsRequestHeader)
        now_ms = self._clock()
        matching = _matching(self._log.table, header, now_ms)
        rest = [transaction for transaction in matching if transaction.commit_log_offset > header.after]
        count = max(1, min(header.max_count, LARGEST_PAGE))
        page = nsmallest(count, rest, key=lambda transaction: transaction.commit_log_offset)
        infos = [self._finder.describe_pending(transaction, now_ms) for transaction in page]
        next_after = infos[-1].half_offset if len(rest) > len(page) else None
        return self._answer(command, infos, len(matching), next_after)

    def show(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Pending or decided transactions, by id, key or half offset. None found is an empty answer."""
        header = command.decode_header(ShowTransactionRequestHeader)
        now_ms = self._clock()
        infos: dict[int, TransactionInfo] = {}
        if header.half_offset is not None:
            infos |= {info.half_offset: info for info in self._finder.by_offset(header.half_offset, now_ms)}
        for word in filter(None, dict.fromkeys((header.transaction_id, header.key))):
            self._refuse_search_without_index()
            infos |= {info.half_offset: info for info in self._finder.by_word(word, now_ms)}
        return self._answer(command, list(infos.values()), len(infos))

    def decide(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """A person commits or rolls back. Like every decision it must be the first; its reason is kept in the op message."""
        header = command.decode_header(DecideTransactionRequestHeader)
        reason = acceptable_reason(header.reason, what_for="a decision by hand")
        transaction = self._the_one_pending(header)
        now_ms = self._clock()
        try:
            end_position = (self._log.commit if header.commit else self._log.roll_back)(transaction, now_ms, reason)
        except (RecordNotFound, CorruptRecord, NotAHalfMessage) as error:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"the half message cannot be read, so it can only be rolled back: {error}"
            ) from None
        if header.commit:
            self._log.counts.commits_by_hand += 1
        else:
            self._log.counts.rollbacks_by_hand += 1
        decision = "committed" if header.commit else "rolled back"
        logger.warning(
            "%s %s by hand the transaction at %d of %s: %s",
            connection.peer, decision, transaction.commit_log_offset, transaction.producer_group, reason,
        )  # fmt: skip
        info = TransactionInfo(
            decision, transaction.commit_log_offset, header.transaction_id, transaction.producer_group, reason=reason,
            topic=transaction.topic.decode(errors="replace"), decided_ms=now_ms,
        )  # fmt: skip
        self._group_commit.appended()
        self._group_commit.after_durable(end_position, connection, self._answer(command, [info], 1))
        return None

    def list_decided(self, connection: Connection, command: RemotingCommand) -> bytes:
        """What was decided with a reason, the latest first."""
        self._refuse_search_without_index()
        header = command.decode_header(ListDecidedTransactionsRequestHeader)
        infos = self._finder.with_reason(header.before_ms, max(1, min(header.max_count, LARGEST_PAGE)))
        return self._answer(command, infos, len(infos))

    def _the_one_pending(self, header: DecideTransactionRequestHeader) -> PendingTransaction:
        """Raises RequestRefused unless there is one, and only one."""
        if header.half_offset is not None:
            transaction = self._finder.pending_by_offset(header.half_offset)
            if transaction is None:
                raise self._not_pending(f"at half offset {header.half_offset}", header)
            return transaction
        self._refuse_search_without_index()
        if not self._finder.finds_all(header.transaction_id or ""):
            remark = "too many half messages have that id to find the one that is meant; name it by its half offset"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        found = self._finder.pending_by_id(header.transaction_id or "")
        if not found:
            raise self._not_pending(f"with id {header.transaction_id}", header)
        if len(found) > 1:
            offsets = ", ".join(str(transaction.commit_log_offset) for transaction in found)
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"{len(found)} pending transactions have that id; name one by its half offset: {offsets}",
            )
        return found[0]

    def _not_pending(self, which: str, header: DecideTransactionRequestHeader) -> RequestRefused:
        now_ms = self._clock()
        if header.half_offset is not None:
            infos = self._finder.by_offset(header.half_offset, now_ms)
        else:
            infos = self._finder.by_word(header.transaction_id or "", now_ms)
        if not infos:
            return RequestRefused(ResponseCode.QUERY_NOT_FOUND, f"there is no transaction {which}")
        remark = f"the transaction {which} is {infos[-1].state} already; its first decision counts"
        return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)

    def _refuse_search_without_index(self) -> None:
        if not self._finder.can_search:
            remark = "without an index (messageIndexEnable=false) transactions are found by their half offset only"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)

    def _answer(self, command: RemotingCommand, infos: list[TransactionInfo], total: int, next_after: int | None = None) -> bytes:
        for info in infos:
            if info.state == PENDING:
                self._add_producers(info)
        body = TransactionList(transactions=infos, total=total, next_after=next_after)
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def _add_producers(self, info: TransactionInfo) -> None:
        online = self._producers.connections(info.producer_group)
        info.is_producer_online = bool(online)
        owed_since_ms = self._checks_in_flight.owed_since_ms(online, info.half_offset)
        info.answer_owed_ms = max(0, self._clock() - owed_since_ms) if owed_since_ms is not None else None


def _matching(
    transactions: Iterable[PendingTransaction], header: ListPendingTransactionsRequestHeader, now_ms: int
) -> list[PendingTransaction]:
    topic = header.topic.encode() if header.topic is not None else None
    begun_until_ms = now_ms - header.older_than_ms
    return [
        transaction
        for transaction in transactions
        if transaction.begun_ms <= begun_until_ms
        and (topic is None or transaction.topic == topic)
        and (header.producer_group is None or transaction.producer_group == header.producer_group)
    ]
