"""Decisions about transactions, and check-backs over telemetry (RocketMQ's EndTransactionActivity and GrpcClientChannel).

Apache's proxy keeps the offsets of each half message in memory, and refuses a decision after a restart. Here the transaction id
contains the offsets. Clients return the id with their decision, and the broker validates these offsets like those in a header.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import record, sysflag
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.proxy.answers import OK, CallRefused
from rocketmq_broker.proxy.checks import refuse_topic
from rocketmq_broker.proxy.connections.session import ClientSession, ClientSessions
from rocketmq_broker.proxy.messages.stored import of_stored
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler

logger = logging.getLogger(__name__)

_SEPARATOR: Final = "/"
_MAX_DIGITS: Final = 19
_MAX_MESSAGE_ID_LENGTH: Final = props.MAX_PROPERTIES_LENGTH
_DECISIONS: Final[dict[int, int]] = {
    api.COMMIT: sysflag.TRANSACTION_COMMIT_TYPE,
    api.ROLLBACK: sysflag.TRANSACTION_ROLLBACK_TYPE,
    api.TRANSACTION_RESOLUTION_UNSPECIFIED: sysflag.TRANSACTION_NOT_TYPE,
}


@dataclass(frozen=True, slots=True)
class TransactionHandle:
    """The position of a half message, which consists of its commit log offset and its offset in the queue of half messages."""

    commit_log_offset: int
    queue_offset: int

    def transaction_id(self, message_id: str) -> str:
        """Returns the transaction id, `MESSAGE_ID/COMMIT_LOG_OFFSET/QUEUE_OFFSET`."""
        return _SEPARATOR.join((message_id, str(self.commit_log_offset), str(self.queue_offset)))

    @classmethod
    def of(cls, transaction_id: str) -> Self:
        """Parses a transaction id. Raises CallRefused if it does not have the form that `transaction_id` returns."""
        parts = transaction_id.rsplit(_SEPARATOR, 2)
        if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts[1:]):
            raise CallRefused(api.INVALID_TRANSACTION_ID, f"not a transaction id of this broker: {transaction_id[:200]!r}")
        return cls(int(parts[1]), int(parts[2]))


async def end_transaction(session: ClientSession, request: service.EndTransactionRequest) -> service.EndTransactionResponse:
    """Passes a decision, or the response to a check-back, to the broker.

    Raises CallRefused if the broker refuses the decision. Apache's proxy does not report such a refusal.
    """
    refuse_topic(request.topic.name)
    if len(request.message_id) > _MAX_MESSAGE_ID_LENGTH:
        reason = f"message id too long: {len(request.message_id)} characters, at most {_MAX_MESSAGE_ID_LENGTH}"
        raise CallRefused(api.ILLEGAL_MESSAGE_ID, reason)
    handle = TransactionHandle.of(request.transaction_id)
    decision = _DECISIONS.get(request.resolution)
    if decision is None:
        raise CallRefused(api.BAD_REQUEST, f"unknown resolution {request.resolution}: must be COMMIT, ROLLBACK or unspecified")
    header = EndTransactionRequestHeader(
        producer_group=request.topic.name,
        tran_state_table_offset=handle.queue_offset,
        commit_log_offset=handle.commit_log_offset,
        commit_or_rollback=decision,
        from_transaction_check=request.source == api.SOURCE_SERVER_CHECK,
        msg_id=request.message_id,
        transaction_id=request.message_id,
    )
    await session.invoke(RequestCode.END_TRANSACTION, header, system_error=api.INVALID_TRANSACTION_ID)
    return service.EndTransactionResponse(status=OK)


class TelemetryChecks:
    """Passes the broker's check-backs to clients."""

    def __init__(self, sessions: ClientSessions) -> None:
        self._sessions = sessions

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers, keyed by request code. Notifications about changed group members are ignored."""
        return {
            RequestCode.CHECK_TRANSACTION_STATE: self._check,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: lambda connection, command: None,
        }

    def _check(self, connection: Connection, command: RemotingCommand) -> None:
        """Sends a check-back to the client. The broker repeats a check-back that receives no response."""
        header = command.decode_header(CheckTransactionStateRequestHeader)
        session = self._sessions.at(connection)
        if session is None:
            return
        try:
            half = record.to_message(record.decode_record(command.body))
        except CorruptRecord as error:
            logger.error("cannot send a check-back over gRPC: %s", error)
            return
        message = of_stored(half, half.properties.get(props.REAL_TOPIC, half.topic))
        handle = TransactionHandle(header.commit_log_offset, header.tran_state_table_offset)
        recover = service.RecoverOrphanedTransactionCommand(
            message=message, transaction_id=handle.transaction_id(half.message_id)
        )
        session.send(service.TelemetryCommand(recover_orphaned_transaction_command=recover))
