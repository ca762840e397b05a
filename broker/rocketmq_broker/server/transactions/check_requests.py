"""Sends checks to producers, and tracks checks without a response (AbstractTransactionalMessageCheckListener).

A check requests the outcome of a transaction from a producer. The producer responds with an ordinary
END_TRANSACTION request. A check is counted when it is sent.
"""

from collections.abc import Callable
from typing import Final, Protocol

from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.errors import RemotingError
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.transaction.checking.check_message import check_message
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight
from rocketmq_broker.transaction.decision import GroupState
from rocketmq_broker.transaction.errors import HalfMessageLost, NotAHalfMessage, NotWrittenYet
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.pending_transaction import PendingTransaction

_PORT_LENGTH: Final = 4


class Producers(Protocol):
    """The connected producers (ProducerGroups)."""

    def connections(self, group: str) -> list[Connection]:
        """Returns the connections of a group's members."""


class CheckRequests:
    """Sends checks to producers, and repeats unanswered checks."""

    def __init__(
        self,
        *,
        messages: TransactionalMessages,
        producers: Producers,
        checks_in_flight: ChecksInFlight[Connection],
        store_host: bytes,
    ) -> None:
        self._messages = messages
        self._producers = producers
        self._checks_in_flight = checks_in_flight
        self._store_host = store_host
        self._turn = 0
        self.may_check: Callable[[Connection, bytes], bool] | None = None
        """A function that returns True if a producer may receive checks for transactions of a topic.

        If it is None, all producers may receive checks.
        """

    def group(self, transaction: PendingTransaction) -> tuple[GroupState, list[Connection]]:
        """Returns the state of the transaction's producer group, and the connections to which a check can be sent."""
        online = self._producers.connections(transaction.producer_group)
        if self.may_check is not None:
            online = [connection for connection in online if self.may_check(connection, transaction.topic)]
        may_ask, offset = self._checks_in_flight.may_ask, transaction.commit_log_offset
        able = [connection for connection in online if connection.is_writable and may_ask(connection, offset)]
        owes_answer = transaction.checks > 0 and self._checks_in_flight.owed_since_ms(online, offset) is not None
        return GroupState(bool(online), bool(able), owes_answer), able

    def send(self, transaction: PendingTransaction, able: list[Connection], now_ms: int) -> None:
        """Sends a check to the most suitable connection in `able`. Raises NotWrittenYet, HalfMessageLost, NotAHalfMessage."""
        half = self._messages.read(transaction)
        asked = self._ask_one(transaction, half, self._in_turn(able, half.born_host), transaction.checks + 1, now_ms)
        if asked is None:
            self._messages.counts.checks_without_producer += 1
            return
        transaction.checks += 1
        self._checks_in_flight.asked(asked, transaction.commit_log_offset, now_ms)
        self._messages.counts.checks_sent += 1

    def repeat_unanswered(self, now_ms: int, limit: int) -> None:
        """Repeats at most `limit` checks whose responses may be lost.

        Prefers other producers of the group to the producer that has not responded. A repeated check is counted only once
        and keeps its number.
        """
        for owing, commit_log_offset in self._checks_in_flight.take_repetitions(now_ms, limit):
            transaction = self._messages.table.find(commit_log_offset)
            if transaction is None:
                continue
            try:
                self._repeat(transaction, owing, now_ms)
            except (NotWrittenYet, HalfMessageLost, NotAHalfMessage):
                continue  # the check service reports it when it is due

    def _repeat(self, transaction: PendingTransaction, owing: Connection, now_ms: int) -> None:
        offset = transaction.commit_log_offset
        _, able = self.group(transaction)
        others = [one for one in able if one is not owing and not self._checks_in_flight.is_silent(one)]
        half = self._messages.read(transaction)
        in_turn = self._in_turn(others, half.born_host) if others else []
        online = self._producers.connections(transaction.producer_group)
        if owing in online and owing.is_writable:
            in_turn.append(owing)
        asked = self._ask_one(transaction, half, in_turn, max(1, transaction.checks), now_ms)
        if asked is not None and asked is not owing:
            self._checks_in_flight.repeated_by(asked, offset, now_ms)

    def _ask_one(
        self,
        transaction: PendingTransaction,
        half: HalfMessage,
        in_turn: list[Connection],
        number: int,
        now_ms: int,
    ) -> Connection | None:
        """Sends check number `number` to the first connection that accepts it.

        Returns this connection, or None if no connection accepts the check.
        """
        header = _header(transaction, half, self._store_host)
        body = check_message(half, transaction, number)
        for connection in in_turn:
            try:
                connection.invoke_oneway(RequestCode.CHECK_TRANSACTION_STATE, header, body)
            except RemotingError:
                continue
            self._checks_in_flight.on_record.asked(transaction.commit_log_offset, connection.peer, now_ms)
            return connection
        return None

    def on_disconnected(self, connection: Connection) -> None:
        """Subtracts the unanswered checks of a disconnected producer from the check counts of the transactions."""
        for commit_log_offset, checks in self._checks_in_flight.departed(connection).items():
            transaction = self._messages.table.find(commit_log_offset)
            if transaction is not None:
                transaction.checks -= checks
                self._messages.counts.checks_given_back += checks

    def _in_turn(self, able: list[Connection], born_host: bytes) -> list[Connection]:
        """Returns the producers in order of preference: the half message's sender, producers on its machine, all others.

        Producers of equal rank take turns. Producers that did not respond to a check in time, and have sent no response
        since, come last.
        """
        self._turn += 1
        start = self._turn % len(able)
        in_turn = able[start:] + able[:start]
        is_silent = self._checks_in_flight.is_silent
        return sorted(in_turn, key=lambda one: (is_silent(one), *_strangeness(one.born_host, born_host)))


def _strangeness(host: bytes, born_host: bytes) -> tuple[bool, bool]:
    """Returns a sort key that puts the sender's connection first, followed by connections from its machine.

    Machines are compared without ports, because a reconnect changes the port.
    """
    return host != born_host, host[:-_PORT_LENGTH] != born_host[:-_PORT_LENGTH]


def _header(transaction: PendingTransaction, half: HalfMessage, store_host: bytes) -> CheckTransactionStateRequestHeader:
    return CheckTransactionStateRequestHeader(
        tran_state_table_offset=transaction.queue_offset,
        commit_log_offset=transaction.commit_log_offset,
        msg_id=half.transaction_id,
        transaction_id=half.transaction_id,
        offset_msg_id=offset_message_id(store_host, transaction.commit_log_offset),
    )
