"""The timer that asks producers what became of their transactions (RocketMQ's TransactionalMessageCheckService and its listener).

A producer's answer is an END_TRANSACTION request like any other; here a check is only sent, and counted once it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from broker.message.errors import CorruptRecord
from broker.message.ids import offset_message_id
from broker.protocol.codes import RequestCode
from broker.protocol.headers import CheckTransactionStateRequestHeader
from broker.remoting.alarm import Alarm
from broker.remoting.connection import Connection
from broker.remoting.errors import RemotingError
from broker.server.transactions.transaction_log import TransactionLog
from broker.store import MessageStore, RecordLost, RecordNotFound, StoreUnwritable
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.decision import CheckAction, GroupState, decide_check, must_move_forward
from broker.transaction.errors import NotAHalfMessage
from broker.transaction.half_message import check_back
from broker.transaction.half_record import HalfMessage
from broker.transaction.pending import PendingTransaction

logger = logging.getLogger(__name__)

AT_MOST_AT_ONCE = 256
"""Transactions looked at before others get their turn on the event loop."""
HELD_BACK_MS = 1_000
"""When to look again if no producer of the group can be asked now, or the half message is on its way to the disk."""
UNWRITABLE_MS = 1_000
"""When to try again if the store could not be written."""
LONGEST_SLEEP_S = 1.0
"""The event loop's clock may go slower than the wall clock: what is due is late by no more than this."""
SHORTEST_SLEEP_S = 0.02

_PORT_LENGTH: Final = 4


class Producers(Protocol):
    """Who is online (ProducerGroups)."""

    def connections(self, group: str) -> list[Connection]:
        """The connections of a group's members."""


class CheckBack:
    """Looks at the transactions that are due."""

    def __init__(
        self,
        *,
        log: TransactionLog,
        store: MessageStore,
        producers: Producers,
        checks_in_flight: ChecksInFlight[Connection],
        appended: Callable[[], None],
        clock: Callable[[], int],
        expiry_clock: Callable[[], int],
    ) -> None:
        """`appended` is told when the store has something to write (GroupCommit.appended).

        `expiry_clock` says the time by which a transaction may be given up for its age (ExpiryClock).
        """
        self._log = log
        self._store = store
        self._producers = producers
        self._checks_in_flight = checks_in_flight
        self._appended = appended
        self._clock = clock
        self._expiry_clock = expiry_clock
        self.alarm = Alarm()
        """Rings when a transaction is due sooner than the last `look_now` said."""
        self._turn = 0
        self._known_bad: set[int] = set()

    def look_now(self) -> float | None:
        """Does what is due. Returns in how many seconds something is due next; None if nothing is pending."""
        self.look(self._clock())
        table = self._log.table
        due_ms = table.next_due_ms()
        table.watch(due_ms, self.alarm.ring)
        return None if due_ms is None else min(max((due_ms - self._clock()) / 1000, 0), LONGEST_SLEEP_S)

    def look(self, now_ms: int) -> None:
        """Does what is due at that time, but not too much at once."""
        before = self._log.appended_position
        self._checks_in_flight.notice_time(now_ms)
        for transaction in self._log.table.due(now_ms, AT_MOST_AT_ONCE):
            try:
                self._look_at(transaction, now_ms)
            except StoreUnwritable as error:
                self._log.table.reschedule(transaction, now_ms + UNWRITABLE_MS)
                logger.warning("a transaction cannot be closed now: %s", error)
            except Exception as error:
                self._pass_over(transaction, error)
        try:
            self._move_forward(now_ms)
        finally:
            if self._log.appended_position != before:
                self._appended()

    def on_disconnected(self, connection: Connection) -> None:
        """A producer is gone: the checks that it leaves unanswered count no more, as nobody could answer them."""
        for commit_log_offset, checks in self._checks_in_flight.departed(connection).items():
            transaction = self._log.table.find(commit_log_offset)
            if transaction is not None:
                transaction.checks -= checks
                self._log.counts.checks_given_back += checks

    def _look_at(self, transaction: PendingTransaction, now_ms: int) -> None:
        online = self._producers.connections(transaction.producer_group)
        able = self._able(online, transaction)
        group = GroupState(bool(online), bool(able), self._is_owed(online, transaction))
        action = decide_check(transaction, self._expiry_clock(), self._log.policy, group)
        if action is CheckAction.NO_PRODUCER:
            self._log.counts.checks_without_producer += 1
        elif action is CheckAction.HOLD:
            self._log.counts.checks_held_back += 1
            self._look_again_soon(transaction, now_ms)
        elif action is CheckAction.CHECK_BACK:
            self._check_back(transaction, able, now_ms)
        else:
            self._discard(transaction, action, now_ms)

    def _able(self, online: list[Connection], transaction: PendingTransaction) -> list[Connection]:
        """Who could answer a check: those that read what they are sent, and are not busy with this very one."""
        may_ask, offset = self._checks_in_flight.may_ask, transaction.commit_log_offset
        return [connection for connection in online if connection.is_writable and may_ask(connection, offset)]

    def _is_owed(self, online: list[Connection], transaction: PendingTransaction) -> bool:
        if not transaction.checks:
            return False
        return self._checks_in_flight.owed_since_ms(online, transaction.commit_log_offset) is not None

    def _look_again_soon(self, transaction: PendingTransaction, now_ms: int) -> None:
        self._log.table.reschedule(transaction, min(transaction.due_ms, now_ms + HELD_BACK_MS))

    def _check_back(self, transaction: PendingTransaction, able: list[Connection], now_ms: int) -> None:
        try:
            half = self._log.read(transaction)
        except RecordNotFound:
            self._look_again_soon(transaction, now_ms)
            return
        except RecordLost:
            if transaction.stored_at >= self._store.commit_log_min_offset:
                raise  # damaged, and not expired: it is closed when its time is over
            self._give_up(transaction, now_ms)
            return
        header = _header(transaction, half, self._store.config.store_host)
        body = check_back(
            half,
            commit_log_offset=transaction.commit_log_offset,
            queue_offset=transaction.queue_offset,
            checks=transaction.checks + 1,
        )
        for connection in self._in_turn(able, half.born_host):
            try:
                connection.invoke_oneway(RequestCode.CHECK_TRANSACTION_STATE, header, body)
            except RemotingError:
                continue
            transaction.checks += 1
            self._checks_in_flight.asked(connection, transaction.commit_log_offset, now_ms)
            self._log.counts.checks_sent += 1
            return
        self._log.counts.checks_without_producer += 1

    def _in_turn(self, able: list[Connection], born_host: bytes) -> list[Connection]:
        """Whom to ask, best first: who sent the half message, who is where it came from, then the others in turn.

        Last, who let a check time out and has answered none since.
        """
        self._turn += 1
        start = self._turn % len(able)
        in_turn = able[start:] + able[:start]
        is_silent = self._checks_in_flight.is_silent
        return sorted(in_turn, key=lambda one: (is_silent(one), *_strangeness(one.born_host, born_host)))

    def _discard(self, transaction: PendingTransaction, action: CheckAction, now_ms: int) -> None:
        """Parks the message. The log has a line for it once it is on disk (ParkedMessages)."""
        try:
            self._log.discard(transaction, now_ms)
        except RecordNotFound:
            self._look_again_soon(transaction, now_ms)
            return
        except (CorruptRecord, NotAHalfMessage):
            self._give_up(transaction, now_ms)
            return
        if action is CheckAction.SKIP:
            self._log.counts.skips += 1
        else:
            self._log.counts.discards += 1

    def _give_up(self, transaction: PendingTransaction, now_ms: int) -> None:
        self._log.give_up(transaction, now_ms)
        self._log.counts.bad_records += 1
        logger.error(
            "lost the transaction at %d of %s: its half message cannot be read any more",
            transaction.commit_log_offset, transaction.producer_group,
        )  # fmt: skip

    def _move_forward(self, now_ms: int) -> None:
        for _ in range(AT_MOST_AT_ONCE):
            transaction = must_move_forward(self._log.table, self._log.policy)
            if transaction is None:
                return
            try:
                unanswered = self._checks_in_flight.unanswered_about(transaction.commit_log_offset)
                self._log.move_forward(transaction, now_ms, transaction.checks - unanswered)
            except StoreUnwritable:
                return
            except RecordNotFound:
                self._look_again_soon(transaction, now_ms)
                return
            except (CorruptRecord, NotAHalfMessage):
                self._give_up(transaction, now_ms)

    def _pass_over(self, transaction: PendingTransaction, error: Exception) -> None:
        """Leaves a transaction for the next time, and says why the first time."""
        self._log.counts.bad_records += 1
        if transaction.commit_log_offset in self._known_bad:
            return
        self._known_bad.add(transaction.commit_log_offset)
        known = isinstance(error, (CorruptRecord, NotAHalfMessage))
        logger.error(
            "cannot check the transaction at %d of %s: %s",
            transaction.commit_log_offset, transaction.producer_group, error, exc_info=None if known else error,
        )  # fmt: skip


def _strangeness(host: bytes, born_host: bytes) -> tuple[bool, bool]:
    """Whether that is another connection, and whether another machine: one that connected anew has another port."""
    return host != born_host, host[:-_PORT_LENGTH] != born_host[:-_PORT_LENGTH]


def _header(transaction: PendingTransaction, half: HalfMessage, store_host: bytes) -> CheckTransactionStateRequestHeader:
    return CheckTransactionStateRequestHeader(
        tran_state_table_offset=transaction.queue_offset,
        commit_log_offset=transaction.commit_log_offset,
        msg_id=half.transaction_id,
        transaction_id=half.transaction_id,
        offset_msg_id=offset_message_id(store_host, transaction.commit_log_offset),
    )
