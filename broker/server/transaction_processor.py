"""Transactions as clients see them: the half message, the decision, the resumption (RocketMQ's EndTransactionProcessor)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from broker.message.errors import CorruptRecord
from broker.message.ids import parse_offset_message_id
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.command import RemotingCommand, encode_response
from broker.protocol.headers import EndTransactionRequestHeader, ResumeCheckHalfMessageRequestHeader
from broker.remoting.connection import Connection
from broker.remoting.dispatcher import Handler, RequestRefused
from broker.server.transaction_log import TransactionLog
from broker.server.transaction_recovery import message_at, records_from
from broker.store import Appended, MessageStore, RecordNotFound
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.decision import EndAction, EndDecision, EndRequest, Refusal, decide_end, decide_late_end
from broker.transaction.errors import DelayedTransaction, NotADestination, NotAHalfMessage, NotResumable
from broker.transaction.half_record import HALF_TOPIC, HalfMessage, read_any_message, read_half_message
from broker.transaction.resumption import refuse_if_not_resumable

logger = logging.getLogger(__name__)

_FIND_ALL = 64
_EVER_MS = 2**62


class Durability(Protocol):
    """What releases answers once the store keeps its promise (GroupCommit)."""

    def appended(self) -> None:
        """Something was appended: write it soon."""

    def after_durable(self, position: int, connection: Connection, frame: bytes) -> None:
        """Sends the frame once everything before the position is durable."""


class TransactionProcessor:
    """Takes half messages, decisions and resumptions."""

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
        return {
            RequestCode.END_TRANSACTION: self.end_transaction,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume_check,
        }

    def append(
        self,
        connection: Connection,
        *,
        producer_group: str,
        topic: bytes,
        queue_id: int,
        body: bytes,
        properties: bytes,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        reconsume_times: int,
        now_ms: int,
    ) -> Appended:
        """Appends the half message of a message that begins a transaction.

        Raises RequestRefused, IllegalMessage or StoreUnwritable, and then nothing is appended.
        """
        if self._rejects:
            remark = f"the broker[{self._broker_host}] sending transaction message is forbidden"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        try:
            return self._log.append_half(
                producer_group=producer_group,
                topic=topic,
                queue_id=queue_id,
                body=body,
                properties=properties,
                flag=flag,
                sys_flag=sys_flag,
                born_timestamp=born_timestamp,
                born_host=connection.born_host,
                reconsume_times=reconsume_times,
                now_ms=now_ms,
            )
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

    def resume_check(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """An operator wants a discarded message to be checked again."""
        header = command.decode_header(ResumeCheckHalfMessageRequestHeader)
        try:
            place = parse_offset_message_id(header.msg_id or "")
            discarded = read_half_message(self._store.read_queued(place.commit_log_offset))
            refuse_if_not_resumable(discarded, self._messages_alike(discarded))
            end_position = self._log.resume(discarded, self._clock())
        except (ValueError, RecordNotFound, CorruptRecord, NotAHalfMessage, NotResumable) as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the message {header.msg_id} cannot be resumed: {error}") from None
        logger.info("the discarded message %s is checked again", header.msg_id)
        self._group_commit.appended()
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

    def _messages_alike(self, discarded: HalfMessage) -> Iterable[HalfMessage]:
        """Messages with the same transaction id: half messages, and in the topic it was for. Without an index, half messages."""
        transaction_id = discarded.transaction_id
        if transaction_id is None or not self._store.config.is_index_enabled:
            return self._half_messages_since(discarded)
        topic, _ = discarded.destination()
        found = [self._store.query(place, transaction_id, _FIND_ALL, 0, _EVER_MS) for place in (HALF_TOPIC, topic)]
        if not all(one.are_all for one in found):  # somebody sent many with that id: one that counts may be behind them
            return self._half_messages_since(discarded)
        return [read_any_message(record) for one in found for record in one.records]

    def _half_messages_since(self, discarded: HalfMessage) -> Iterator[HalfMessage]:
        first = self._store.first_behind(HALF_TOPIC, 0, discarded.commit_log_offset)
        return map(read_any_message, records_from(self._store, HALF_TOPIC, 0, first))
