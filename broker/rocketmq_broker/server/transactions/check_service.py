"""Handles pending transactions that are due for a check (RocketMQ's TransactionalMessageCheckService)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.transactions.check_requests import CheckRequests
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.store import StoreUnwritable
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight
from rocketmq_broker.transaction.decision import CheckAction, decide_check, must_be_put_back
from rocketmq_broker.transaction.errors import HalfMessageExpired, HalfMessageLost, NotAHalfMessage, NotWrittenYet
from rocketmq_broker.transaction.pending_transaction import PendingTransaction

logger = logging.getLogger(__name__)

AT_MOST_AT_ONCE = 256
"""The maximum number of transactions that are handled in one turn of the event loop."""
HELD_BACK_MS = 1_000
"""The pause, in milliseconds, before a retry if no producer of the group is available, or the half message is not on disk yet."""
UNWRITABLE_MS = 1_000
"""The pause, in milliseconds, before a retry if the store was not writable."""
MIN_SLEEP_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckService:
    """Handles transactions that are due: sends checks, puts half messages back, or discards transactions.

    `appended` is called after records have been appended to the store (GroupCommit.appended).

    `expiry_clock` is the clock for discarding transactions by age (ExpiryClock). `max_sleep_s` limits the result of `due_s`,
    because the event loop's clock may be slower than `clock`.
    """

    messages: TransactionalMessages
    requests: CheckRequests
    checks_in_flight: ChecksInFlight[Connection]
    appended: Callable[[], None]
    clock: Callable[[], int]
    expiry_clock: Callable[[], int]
    max_sleep_s: float
    alarm: Alarm = field(default_factory=Alarm, init=False)
    """Wakes the task that calls `handle_due_now`, if a transaction is due earlier than its last result says."""
    _known_bad: set[int] = field(default_factory=set, init=False)

    def restrict_checks(self, may_check: Callable[[Connection, bytes], bool]) -> None:
        """Restricts checks to producers for which `may_check` returns True.

        `may_check` is called with a producer's connection and the topic of the half message.
        """
        self.requests.may_check = may_check

    def handle_due_now(self) -> float | None:
        """Handles due transactions. Returns the seconds until the next one is due, or None if none is pending."""
        self.handle_due(self.clock())
        return self.due_s()

    def due_s(self) -> float | None:
        """Returns the seconds until the next transaction is due, or None if none is pending.

        Also arranges that `alarm` rings if a transaction becomes due earlier.
        """
        due_times = self.messages.table.due_times
        times = due_times.next_ms(), self.checks_in_flight.next_repetition_ms()
        due_ms = min((time for time in times if time is not None), default=None)
        due_times.watch(due_ms, self.alarm.ring)
        return None if due_ms is None else min(max((due_ms - self.clock()) / 1000, 0), self.max_sleep_s)

    def handle_due(self, now_ms: int) -> None:
        """Handles at most AT_MOST_AT_ONCE transactions that are due at `now_ms`."""
        before = self.messages.appended_position
        self.checks_in_flight.notice_time(now_ms)
        for transaction in self.messages.table.due_times.take_due(now_ms, AT_MOST_AT_ONCE):
            try:
                self._handle(transaction, now_ms)
            except StoreUnwritable as error:
                self.messages.table.due_times.reschedule(transaction, now_ms + UNWRITABLE_MS)
                logger.warning("cannot end a transaction now, retrying in %g s: %s", UNWRITABLE_MS / 1000, error)
            except Exception as error:
                self._skip(transaction, error)
        self.requests.repeat_unanswered(now_ms, AT_MOST_AT_ONCE)
        try:
            self._put_back_oldest(now_ms)
        finally:
            if self.messages.appended_position != before:
                self.appended()

    def _handle(self, transaction: PendingTransaction, now_ms: int) -> None:
        group, able = self.requests.group(transaction)
        action = decide_check(transaction, self.expiry_clock(), self.messages.policy, group)
        if action is CheckAction.NO_PRODUCER:
            self.messages.counts.checks_without_producer += 1
        elif action is CheckAction.HOLD:
            self.messages.counts.checks_held_back += 1
            self._retry_soon(transaction, now_ms)
        elif action is CheckAction.CHECK_BACK:
            self._check_back(transaction, able, now_ms)
        else:
            self._discard(transaction, action, now_ms)

    def _check_back(self, transaction: PendingTransaction, able: list[Connection], now_ms: int) -> None:
        try:
            self.requests.send(transaction, able, now_ms)
        except NotWrittenYet:
            self._retry_soon(transaction, now_ms)
        except HalfMessageExpired:
            self._lose(transaction, now_ms)

    def _discard(self, transaction: PendingTransaction, action: CheckAction, now_ms: int) -> None:
        """Parks a transaction's message. ParkedMessages logs the message when it becomes visible to readers."""
        try:
            self.messages.discard(transaction, now_ms)
        except NotWrittenYet:
            self._retry_soon(transaction, now_ms)
        except HalfMessageLost:
            self._lose(transaction, now_ms)
        else:
            if action is CheckAction.SKIP:
                self.messages.counts.skips += 1
            else:
                self.messages.counts.discards += 1

    def _put_back_oldest(self, now_ms: int) -> None:
        """Puts the oldest half messages back at the end of the half queue.

        The next start then has fewer messages to read.
        """
        for _ in range(AT_MOST_AT_ONCE):
            transaction = must_be_put_back(self.messages.table, self.messages.policy)
            if transaction is None:
                return
            try:
                checks = transaction.checks - self.checks_in_flight.unanswered_about(transaction.commit_log_offset)
                self.messages.put_back(transaction, now_ms, checks)
            except StoreUnwritable:
                return
            except NotWrittenYet:
                self._retry_soon(transaction, now_ms)
                return
            except HalfMessageLost:
                self._lose(transaction, now_ms)

    def _retry_soon(self, transaction: PendingTransaction, now_ms: int) -> None:
        self.messages.table.due_times.reschedule(transaction, min(transaction.due_ms, now_ms + HELD_BACK_MS))

    def _lose(self, transaction: PendingTransaction, now_ms: int) -> None:
        self.messages.lose(transaction, now_ms)
        self.messages.counts.bad_records += 1
        logger.error(
            "lost the transaction at commit log offset %d of group %s: its half message is no longer readable",
            transaction.commit_log_offset, transaction.producer_group,
        )  # fmt: skip

    def _skip(self, transaction: PendingTransaction, error: Exception) -> None:
        """Skips a transaction until its next check. Logs the error the first time."""
        self.messages.counts.bad_records += 1
        if transaction.commit_log_offset in self._known_bad:
            return
        self._known_bad.add(transaction.commit_log_offset)
        known = isinstance(error, (HalfMessageLost, NotAHalfMessage))
        logger.error(
            "cannot check the transaction at commit log offset %d of group %s: %s",
            transaction.commit_log_offset, transaction.producer_group, error, exc_info=None if known else error,
        )  # fmt: skip
