"""The timer that asks producers what became of their transactions (RocketMQ's TransactionalMessageCheckService and its listener).

A producer's answer is an END_TRANSACTION request like any other; here a check is only sent, and counted once it is.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from broker.message import topics
from broker.message.errors import CorruptRecord
from broker.message.ids import offset_message_id
from broker.protocol.codes import RequestCode
from broker.protocol.headers import CheckTransactionStateRequestHeader
from broker.remoting.connection import Connection
from broker.remoting.errors import RemotingError
from broker.server.transaction_log import TransactionLog
from broker.store import ConsumerOffsets, MessageStore, RecordNotFound, StoreUnwritable
from broker.transaction.check_counts import check_counts_as_json
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.decision import CheckAction, decide_check, must_move_forward
from broker.transaction.errors import NotAHalfMessage
from broker.transaction.half_message import check_back
from broker.transaction.half_record import HalfMessage
from broker.transaction.offsets import TransactionOffsets
from broker.transaction.pending import PendingTransaction

logger = logging.getLogger(__name__)

AT_MOST_AT_ONCE = 256
"""Transactions looked at before others get their turn on the event loop."""
HELD_BACK_MS = 1_000
"""When to try again if all producers of the group owe too many answers, or the half message is on its way to the disk."""
UNWRITABLE_MS = 1_000
"""When to try again if the store could not be written."""
LONGEST_SLEEP_S = 1.0
SHORTEST_SLEEP_S = 0.02
KEEP_INTERVAL_S = 2.0

_PORT_LENGTH: Final = 4


class Producers(Protocol):
    """Who is online (ProducerGroups)."""

    def connections(self, group: str) -> list[Connection]:
        """The connections of a group's members."""


class CheckCountsFile(Protocol):
    """Where check counts survive a restart (ConfigFile)."""

    def write(self, value: dict[str, Any]) -> None:
        """Replaces the content; durable when it returns. Raises OSError."""


class _NotedOffsets(NamedTuple):
    offsets: TransactionOffsets
    position: int
    """The commit log offset before which everything must be on disk."""
    take_backs: int
    """Something taken back makes them wrong."""


class CheckBack:
    """Looks at the transactions that are due, and keeps what the next broker needs to know of them."""

    def __init__(
        self,
        *,
        log: TransactionLog,
        store: MessageStore,
        producers: Producers,
        checks_in_flight: ChecksInFlight[Connection],
        consumer_offsets: ConsumerOffsets,
        counts_file: CheckCountsFile,
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
        self._consumer_offsets = consumer_offsets
        self._counts_file = counts_file
        self._appended = appended
        self._clock = clock
        self._expiry_clock = expiry_clock
        self._turn = 0
        self._known_bad: set[int] = set()
        self._noted: _NotedOffsets | None = None
        self._are_counts_changed = True
        self._is_finished = False
        self._counts_turn = threading.Lock()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                self.look(self._clock())
            except Exception:
                logger.exception("the check of pending transactions failed; it goes on in a second")
                await asyncio.sleep(LONGEST_SLEEP_S)
            await asyncio.sleep(self._sleep_s())

    async def keep(self) -> None:
        """Keeps every few seconds what the next broker needs, until it is cancelled."""
        while True:
            try:
                self.note_offsets()
                counts = self._changed_counts()
                if counts is not None:
                    await asyncio.to_thread(self._write_counts, counts)
            except OSError as error:
                self._are_counts_changed = True
                logger.warning("cannot keep how often transactions were checked: %s", error)
            except Exception:
                logger.exception("cannot keep what the next start needs to know of transactions")
            await asyncio.sleep(KEEP_INTERVAL_S)

    def finish(self) -> None:
        """The store is flushed for the last time: keeps what the next broker needs. Raises OSError."""
        self._noted = None
        self.note_offsets()
        with self._counts_turn:
            # A thread of `keep` may have been left behind with older counts.
            self._is_finished = True
            self._counts_file.write(check_counts_as_json(self._log.table))

    def look(self, now_ms: int) -> None:
        """Does what is due, but not too much at once."""
        before = self._log.appended_position
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

    def note_offsets(self) -> None:
        """Commits how far CID_RMQ_SYS_TRANS has come, as soon as all that rests on is on disk."""
        take_backs = self._log.counts.take_backs
        if self._noted is None or self._noted.take_backs != take_backs:
            self._noted = _NotedOffsets(self._log.table.consumer_offsets(), self._log.appended_position, take_backs)
        if self._store.flushed_position >= self._noted.position:
            half_offset, op_offset = self._noted.offsets
            group = topics.TRANSACTION_CONSUMER_GROUP
            self._consumer_offsets.commit(group, topics.HALF_TOPIC, 0, half_offset)
            self._consumer_offsets.commit(group, topics.OP_HALF_TOPIC, 0, op_offset)
            self._noted = None

    def _write_counts(self, counts: dict[str, Any]) -> None:
        with self._counts_turn:
            if not self._is_finished:
                self._counts_file.write(counts)

    def _changed_counts(self) -> dict[str, Any] | None:
        if not self._are_counts_changed:
            return None
        self._are_counts_changed = False
        return check_counts_as_json(self._log.table)

    def _sleep_s(self) -> float:
        due_ms = self._log.table.next_due_ms()
        if due_ms is None:
            return LONGEST_SLEEP_S
        return min(max((due_ms - self._clock()) / 1000, SHORTEST_SLEEP_S), LONGEST_SLEEP_S)

    def _look_at(self, transaction: PendingTransaction, now_ms: int) -> None:
        online = [connection for connection in self._producers.connections(transaction.producer_group) if connection.is_writable]
        action = decide_check(transaction, self._expiry_clock(), self._log.policy, is_producer_online=bool(online))
        if action is CheckAction.NO_PRODUCER:
            self._log.counts.checks_without_producer += 1
        elif action is CheckAction.CHECK_BACK:
            self._check_back(transaction, online, now_ms)
        else:
            self._discard(transaction, action, now_ms)

    def _check_back(self, transaction: PendingTransaction, online: list[Connection], now_ms: int) -> None:
        able = [connection for connection in online if self._checks_in_flight.may_ask(connection, now_ms)]
        if not able:
            self._log.counts.checks_held_back += 1
            self._log.table.reschedule(transaction, now_ms + HELD_BACK_MS)
            return
        try:
            half = self._log.read(transaction)
        except RecordNotFound:
            self._not_found(transaction, now_ms)
            return
        header = _header(transaction, half, self._store.config.store_host)
        body = check_back(
            half,
            commit_log_offset=transaction.commit_log_offset,
            queue_offset=transaction.queue_offset,
            checks=transaction.checks + 1,
        )
        for connection in self._in_turn(able, half.born_host, transaction.commit_log_offset):
            try:
                connection.invoke_oneway(RequestCode.CHECK_TRANSACTION_STATE, header, body)
            except RemotingError:
                continue
            transaction.checks += 1
            self._are_counts_changed = True
            self._checks_in_flight.asked(connection, transaction.commit_log_offset, now_ms)
            self._log.counts.checks_sent += 1
            return
        self._log.counts.checks_without_producer += 1

    def _in_turn(self, able: list[Connection], born_host: bytes, commit_log_offset: int) -> list[Connection]:
        """Whom to ask, best first: who sent the half message, who is where it came from, then the others in turn.

        Last, who owes an answer about it.
        """
        self._turn += 1
        start = self._turn % len(able)
        in_turn = able[start:] + able[:start]
        owes = self._checks_in_flight.owes
        return sorted(in_turn, key=lambda one: (owes(one, commit_log_offset), *_strangeness(one.born_host, born_host)))

    def _discard(self, transaction: PendingTransaction, action: CheckAction, now_ms: int) -> None:
        try:
            self._log.discard(transaction, now_ms)
        except RecordNotFound:
            self._not_found(transaction, now_ms)
            return
        except (CorruptRecord, NotAHalfMessage):
            self._give_up(transaction, now_ms)
            return
        if action is CheckAction.SKIP:
            self._log.counts.skips += 1
        else:
            self._log.counts.discards += 1
        logger.warning(
            "gave up the transaction at %d of %s after %d checks: its message is in %s",
            transaction.commit_log_offset, transaction.producer_group, transaction.checks, topics.CHECK_MAX_TIME_TOPIC,
        )  # fmt: skip

    def _not_found(self, transaction: PendingTransaction, now_ms: int) -> None:
        """The half message is not in the files: it expired, or it has not been written yet."""
        if transaction.stored_at < self._store.commit_log_min_offset:
            self._give_up(transaction, now_ms)
        else:
            self._log.table.reschedule(transaction, now_ms + HELD_BACK_MS)

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
                self._log.move_forward(transaction, now_ms)
            except StoreUnwritable:
                return
            except RecordNotFound:
                self._not_found(transaction, now_ms)
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
