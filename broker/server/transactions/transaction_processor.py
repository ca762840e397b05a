"""Transactions as producers see them: the half message and the decision (RocketMQ's EndTransactionProcessor)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from broker.message.errors import CorruptRecord
from broker.message.inner_message import InnerMessage
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.headers import EndTransactionRequestHeader
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler, RequestRefused
from broker.server.ports import Durability
from broker.server.transactions.transaction_log import TransactionLog
from broker.server.transactions.transaction_recovery import message_at
from broker.store import Appended, MessageStore, RecordNotFound
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.decision import EndAction, EndDecision, EndRequest, Refusal, decide_end, decide_late_end
from broker.transaction.errors import DelayedTransaction, NotADestination, NotAHalfMessage

logger = logging.getLogger(__name__)


class TransactionProcessor:
    """Takes half messages and decisions."""

    def __init__(
        self,
        *,
        log: TransactionLog,
        store: MessageStore,
        group_commit: Durability,
        checks_in_flight: ChecksInFlight[Connection],
        reject_transaction_message: bool,
        broker_host: str,
        clock: Callable[[], int],
    ) -> None:
        self._log = log
        self._store = store
        self._group_commit = group_commit
        self._checks_in_flight = checks_in_flight
        self._rejects = reject_transaction_message
        self._broker_host = broker_host
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Request code -> method."""
        return {RequestCode.END_TRANSACTION: self.end_transaction}

    def append(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        """Appends the half message of a message that begins a transaction.

        Raises RequestRefused, IllegalMessage or StoreUnwritable, and then nothing is appended.
        """
        if self._rejects:
            remark = f"the broker[{self._broker_host}] sending transaction message is forbidden"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        try:
            return self._log.append_half(message, producer_group, now_ms)
        except (DelayedTransaction, NotADestination) as error:
            raise RequestRefused(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None

    def end_transaction(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """A producer decides, or answers a check-back."""
        header = command.decode_header(EndTransactionRequestHeader)
        if header.from_transaction_check:
            self._checks_in_flight.answered(connection, header.commit_log_offset)
        request = EndRequest(
            header.commit_or_rollback, header.commit_log_offset, header.tran_state_table_offset, header.producer_group
        )
        decision = decide_end(self._log.table, request)
        if decision.action is EndAction.LOOK_UP:
            half = message_at(self._store, header.commit_log_offset)
            decision = decide_late_end(self._log.table, self._log.copies, request, half)
        if decision.action is EndAction.KEEP:
            self._log.counts.unknown_answers += 1
            return encode_response(command, ResponseCode.SUCCESS)
        end_position = self._carry_out(decision, request, connection)
        self._group_commit.appended()
        if not command.is_oneway:
            self._group_commit.after_durable(end_position, connection, encode_response(command, ResponseCode.SUCCESS))
        return None

    def _carry_out(self, decision: EndDecision, request: EndRequest, connection: Connection) -> int:
        """Does what was decided; returns the commit log offset after it. Raises RequestRefused, StoreUnwritable."""
        transaction = decision.transaction
        if transaction is None:
            raise self._refused(decision.refusal or Refusal.NOT_FOUND, decision.remark, request, connection)
        if decision.action is EndAction.ROLLBACK:
            return self._log.roll_back(transaction, self._clock())
        try:
            return self._log.commit(transaction, self._clock())
        except (RecordNotFound, CorruptRecord, NotAHalfMessage) as error:
            self._log.counts.bad_records += 1
            raise self._refused(Refusal.NOT_FOUND, f"the half message cannot be read: {error}", request, connection) from None

    def _refused(self, refusal: Refusal, remark: str, request: EndRequest, connection: Connection) -> RequestRefused:
        self._log.counts.refusals[refusal] += 1
        logger.warning(
            "refused (%s) what %s of %s decided about commit log offset %d: %s",
            refusal.value, connection.peer, request.producer_group, request.commit_log_offset, remark,
        )  # fmt: skip
        return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
