"""Handles admin requests that list and decide transactions. RocketMQ has no such requests (see issues 4343, 4435, 4436)."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.codes import AdminRequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.ports import Durability
from rocketmq_broker.server.sending.given_reason import acceptable_reason
from rocketmq_broker.server.transactions.check_requests import Producers
from rocketmq_broker.server.transactions.transaction_finder import Found, FoundPending, TransactionFinder
from rocketmq_broker.server.transactions.transaction_infos import check_back_info, decided_info, decided_now_info, pending_info
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight
from rocketmq_broker.transaction.errors import HalfMessageUnreadable
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State

logger = logging.getLogger(__name__)

MAX_PAGE_SIZE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAdminProcessor:
    """Handles the transaction requests of `python -m rocketmq_broker.admin`."""

    messages: TransactionalMessages
    finder: TransactionFinder
    producers: Producers
    checks_in_flight: ChecksInFlight[Connection]
    group_commit: Durability
    clock: Callable[[], int]

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """The handlers of requests about transactions. RocketMQ does not use these request codes."""
        return {
            AdminRequestCode.LIST_PENDING_TRANSACTIONS: self.list_pending,
            AdminRequestCode.SHOW_TRANSACTION: self.show,
            AdminRequestCode.DECIDE_TRANSACTION: self.decide,
            AdminRequestCode.LIST_DECIDED_TRANSACTIONS: self.list_decided,
        }

    def list_pending(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the matching pending transactions, oldest first. Reads only the half messages of one page."""
        header = command.decode_header(ListPendingTransactionsRequestHeader)
        matching = _matching(self.messages, header, self.clock())
        rest = [transaction for transaction in matching if transaction.commit_log_offset > header.after]
        count = max(1, min(header.max_count, MAX_PAGE_SIZE))
        page = nsmallest(count, rest, key=lambda transaction: transaction.commit_log_offset)
        next_after = page[-1].commit_log_offset if len(rest) > len(page) else None
        return self._answer(command, map(self.finder.found_pending, page), len(matching), next_after)

    def show(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the transactions, pending or decided, that match an id, a key or the commit log offset of a half message.

        The list is empty if there are none.
        """
        header = command.decode_header(ShowTransactionRequestHeader)
        found: dict[int, Found] = {}
        if header.half_offset is not None:
            found |= {one.commit_log_offset: one for one in self.finder.by_offset(header.half_offset)}
        for word in filter(None, dict.fromkeys((header.transaction_id, header.key))):
            self._refuse_search_without_index()
            found |= {one.commit_log_offset: one for one in self.finder.by_word(word)}
        infos = [self._info(one) for one in found.values()]
        for info in infos:
            info.check_backs = [check_back_info(one) for one in self.checks_in_flight.on_record.of(info.half_offset)]
        return _encode(command, infos, len(infos))

    def decide(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Commits or rolls back a pending transaction for an operator. The op message stores the reason."""
        header = command.decode_header(DecideTransactionRequestHeader)
        reason = acceptable_reason(header.reason, what_for="a manual decision")
        transaction, now_ms = self._the_one_pending(header), self.clock()
        try:
            end_position = self._carry_out(transaction, now_ms, reason, is_commit=header.commit)
        except HalfMessageUnreadable as error:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR, f"the half message cannot be read, so it can only be rolled back: {error}"
            ) from None
        state = State.COMMITTED if header.commit else State.ROLLED_BACK
        logger.warning(
            "%s manually %s the transaction at commit log offset %d of group %s: %s",
            connection.peer, state.value, transaction.commit_log_offset, transaction.producer_group, reason,
        )  # fmt: skip
        info = decided_now_info(transaction, state, header.transaction_id, reason, now_ms)
        self.group_commit.appended()
        self.group_commit.after_durable(end_position, connection, command, body=_body([info], 1))
        return None

    def _carry_out(self, transaction: PendingTransaction, now_ms: int, reason: str, *, is_commit: bool) -> int:
        if is_commit:
            end_position = self.messages.commit(transaction, now_ms, reason)
            self.messages.counts.commits_by_hand += 1
        else:
            end_position = self.messages.roll_back(transaction, now_ms, reason)
            self.messages.counts.rollbacks_by_hand += 1
        return end_position

    def list_decided(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the transactions that were decided with a reason, latest first."""
        self._refuse_search_without_index()
        header = command.decode_header(ListDecidedTransactionsRequestHeader)
        found = self.finder.with_reason(header.before_ms, max(1, min(header.max_count, MAX_PAGE_SIZE)))
        return self._answer(command, found, len(found))

    def _the_one_pending(self, header: DecideTransactionRequestHeader) -> PendingTransaction:
        """Returns the pending transaction that the request names. Raises RequestRefused if there is none, or more than one."""
        if header.half_offset is not None:
            transaction = self.finder.pending_by_offset(header.half_offset)
            if transaction is None:
                raise self._not_pending(f"at half offset {header.half_offset}", header)
            return transaction
        self._refuse_search_without_index()
        if not self.finder.finds_all(header.transaction_id or ""):
            remark = "too many half messages have this id; use the half offset of the transaction instead"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        found = self.finder.pending_by_id(header.transaction_id or "")
        if not found:
            raise self._not_pending(f"with id {header.transaction_id}", header)
        if len(found) > 1:
            offsets = ", ".join(str(transaction.commit_log_offset) for transaction in found)
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"{len(found)} pending transactions have this id; use the half offset of one of them: {offsets}",
            )
        return found[0]

    def _not_pending(self, which: str, header: DecideTransactionRequestHeader) -> RequestRefused:
        if header.half_offset is not None:
            found = self.finder.by_offset(header.half_offset)
        else:
            found = self.finder.by_word(header.transaction_id or "")
        if not found:
            return RequestRefused(ResponseCode.QUERY_NOT_FOUND, f"no transaction {which}")
        info = self._info(found[-1])
        if info.state == State.PENDING.value:
            remark = (
                f"{header.transaction_id} is a key, which several messages may have; use a transaction id instead: "
                f"{', '.join(self._info(one).transaction_id or '' for one in found)}"
            )
            return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        remark = f"the transaction {which} is {info.state} already; its first decision counts"
        return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)

    def _refuse_search_without_index(self) -> None:
        if not self.finder.can_search:
            remark = "without an index (messageIndexEnable=false), transactions can only be found by half offset"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)

    def _answer(self, command: RemotingCommand, found: Iterable[Found], total: int, next_after: int | None = None) -> bytes:
        return _encode(command, [self._info(one) for one in found], total, next_after)

    def _info(self, found: Found) -> TransactionInfo:
        if not isinstance(found, FoundPending):
            return decided_info(found)
        online = self.producers.connections(found.transaction.producer_group)
        owed_since_ms = self.checks_in_flight.owed_since_ms(online, found.commit_log_offset)
        return pending_info(
            found,
            now_ms=self.clock(),
            check_max=self.messages.policy.check_max,
            is_producer_online=bool(online),
            owed_since_ms=owed_since_ms,
        )


def _encode(command: RemotingCommand, infos: list[TransactionInfo], total: int, next_after: int | None = None) -> bytes:
    return encode_response(command, ResponseCode.SUCCESS, body=_body(infos, total, next_after))


def _body(infos: list[TransactionInfo], total: int, next_after: int | None = None) -> bytes:
    return TransactionList(transactions=infos, total=total, next_after=next_after).encode()


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
