"""What the next broker needs to know of transactions: how far CID_RMQ_SYS_TRANS has come, and how often each was checked."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any, NamedTuple, Protocol

from broker.message import topics
from broker.remoting.connection import Connection
from broker.server.transactions.transaction_log import TransactionLog
from broker.store import ConsumerOffsets, MessageStore
from broker.transaction.check_counts import check_counts_as_json
from broker.transaction.checks_in_flight import ChecksInFlight
from broker.transaction.offsets import TransactionOffsets

logger = logging.getLogger(__name__)

KEEP_INTERVAL_S = 2.0


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


class TransactionNotes:
    """Keeps the notes every few seconds, and a last time when the broker stops."""

    def __init__(
        self,
        *,
        log: TransactionLog,
        store: MessageStore,
        checks_in_flight: ChecksInFlight[Connection],
        consumer_offsets: ConsumerOffsets,
        counts_file: CheckCountsFile,
    ) -> None:
        self._log = log
        self._store = store
        self._checks_in_flight = checks_in_flight
        self._consumer_offsets = consumer_offsets
        self._counts_file = counts_file
        self._noted: _NotedOffsets | None = None
        self._changes_kept: int | None = None
        self._is_finished = False
        self._counts_turn = threading.Lock()

    async def keep(self) -> None:
        """Keeps the notes every few seconds, until it is cancelled."""
        while True:
            try:
                self.note_offsets()
                counts = self._changed_counts()
                if counts is not None:
                    await asyncio.to_thread(self._write_counts, counts)
            except OSError as error:
                self._changes_kept = None
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
            self._counts_file.write(self._counts())

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
        changes = self._checks_in_flight.changes
        if changes == self._changes_kept:
            return None
        self._changes_kept = changes
        return self._counts()

    def _counts(self) -> dict[str, Any]:
        return check_counts_as_json(self._log.table, self._checks_in_flight.unanswered())
