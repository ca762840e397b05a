"""Handles END_TRANSACTION: producers' decisions, and their responses to checks (RocketMQ's EndTransactionProcessor)."""

import logging
from collections.abc import Callable, Mapping

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.ports import Durability
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight
from rocketmq_broker.transaction.decision import EndAction, EndDecision, EndRequest, Refusal
from rocketmq_broker.transaction.errors import HalfMessageUnreadable

logger = logging.getLogger(__name__)


class EndTransactionProcessor:
    """Commits or rolls back transactions. Responds when the result is durable. One-way requests get no response."""

    def __init__(
        self,
        *,
        messages: TransactionalMessages,
        group_commit: Durability,
        checks_in_flight: ChecksInFlight[Connection],
        clock: Callable[[], int],
    ) -> None:
        self._messages = messages
        self._group_commit = group_commit
        self._checks_in_flight = checks_in_flight
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """The handler of END_TRANSACTION requests. Producers send them to commit or roll back, and to respond to check-backs."""
        return {RequestCode.END_TRANSACTION: self.end_transaction}

    def end_transaction(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Applies a producer's decision, or its response to a check."""
        header = command.decode_header(EndTransactionRequestHeader)
        if header.from_transaction_check:
            offset, answer = header.commit_log_offset, header.commit_or_rollback
            self._checks_in_flight.answered(connection, offset, self._clock())
            self._checks_in_flight.on_record.answered(offset, connection.peer, answer, self._clock(), command.remark)
        request = EndRequest(
            header.commit_or_rollback, header.commit_log_offset, header.tran_state_table_offset, header.producer_group
        )
        decision = self._messages.decide(request)
        if decision.action is EndAction.KEEP:
            self._messages.counts.unknown_answers += 1
            return encode_response(command, ResponseCode.SUCCESS)
        end_position = self._carry_out(decision, request, connection)
        self._group_commit.appended()
        if not command.is_oneway:
            self._group_commit.after_durable(end_position, connection, command)
        return None

    def _carry_out(self, decision: EndDecision, request: EndRequest, connection: Connection) -> int:
        """Applies a decision. Returns the commit log offset after its records. Raises RequestRefused, StoreUnwritable."""
        transaction = decision.transaction
        if transaction is None:
            raise self._refused(decision.refusal or Refusal.NOT_FOUND, decision.remark, request, connection)
        if decision.action is EndAction.ROLLBACK:
            return self._messages.roll_back(transaction, self._clock())
        try:
            return self._messages.commit(transaction, self._clock())
        except HalfMessageUnreadable as error:
            self._messages.counts.bad_records += 1
            raise self._refused(Refusal.NOT_FOUND, f"the half message cannot be read: {error}", request, connection) from None

    def _refused(self, refusal: Refusal, remark: str, request: EndRequest, connection: Connection) -> RequestRefused:
        self._messages.counts.refusals[refusal] += 1
        logger.warning(
            "refused a decision of %s in group %s about the transaction at commit log offset %d (%s): %s",
            connection.peer, request.producer_group, request.commit_log_offset, refusal.value, remark,
        )  # fmt: skip
        return RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
