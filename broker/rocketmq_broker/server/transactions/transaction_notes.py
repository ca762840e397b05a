"""Saves data for the next start: the consumer offsets of CID_RMQ_SYS_TRANS, and the number of checks of each transaction."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rocketmq_broker.message import topics
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages
from rocketmq_broker.store import ConsumerOffsets, DamagedStore, MessageStore
from rocketmq_broker.transaction.checking.check_counts import check_counts_as_json, check_counts_from_json
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight
from rocketmq_broker.transaction.messages.offsets import TransactionOffsets

logger = logging.getLogger(__name__)

KEEP_INTERVAL_S = 2.0
"""The interval between writes, in seconds, while transactions change. Otherwise the interval is `idle_s`."""


class CheckCountsFile(Protocol):
    """A file with the check counts of transactions, which are kept across restarts (ConfigFile)."""

    def read(self, decode: Callable[[Any], dict[int, int]]) -> dict[int, int]:
        """Returns the decoded content. Raises DamagedStore."""

    def write(self, value: dict[str, Any]) -> None:
        """Replaces the content and syncs it to disk. Raises OSError."""


def read_check_counts(counts_file: CheckCountsFile) -> dict[int, int]:
    """Returns the number of checks of each transaction, keyed by commit log offset.

    If the file is damaged, returns an empty dict, and some checks are sent again.
    """
    try:
        return counts_file.read(check_counts_from_json)
    except DamagedStore as error:
        logger.warning("cannot read the check counts of pending transactions; some may be checked too often: %s", error)
        return {}


class _NotedOffsets(NamedTuple):
    offsets: TransactionOffsets
    position: int
    """The commit log offset up to which all records must be on disk before the offsets may be committed."""
    take_backs: int
    """The number of losses of records when the offsets were noted. If it has increased since then, the offsets are wrong."""


@dataclass(slots=True, eq=False)
class TransactionNotes:
    """Saves offsets and check counts every few seconds, and once more when the broker stops.

    While no transaction changes, they are written every `idle_s` seconds.
    """

    messages: TransactionalMessages
    store: MessageStore
    checks_in_flight: ChecksInFlight[Connection]
    consumer_offsets: ConsumerOffsets
    counts_file: CheckCountsFile
    idle_s: float
    _noted: _NotedOffsets | None = field(default=None, init=False)
    _kept: TransactionOffsets | None = field(default=None, init=False)
    _changes_kept: int | None = field(default=None, init=False)
    _is_finished: bool = field(default=False, init=False)
    _counts_turn: threading.Lock = field(default_factory=threading.Lock, init=False)

    async def keep(self) -> None:
        """Saves offsets and check counts every few seconds, until it is cancelled."""
        while True:
            kept, counts = self._kept, None
            try:
                self.note_offsets()
                counts = self._changed_counts()
                if counts is not None:
                    await asyncio.to_thread(self._write_counts, counts)
            except OSError as error:
                self._changes_kept = None
                logger.warning("cannot write the check counts of pending transactions: %s", error)
            except Exception:
                logger.exception("cannot save the offsets and check counts of transactions; retrying")
            is_idle = counts is None and self._noted is None and self._kept == kept
            await asyncio.sleep(self.idle_s if is_idle else KEEP_INTERVAL_S)

    def finish(self) -> None:
        """Saves offsets and check counts for the last time. Call it after the last flush of the store. Raises OSError."""
        self._noted = None
        self.note_offsets()
        with self._counts_turn:
            # A thread started by `keep` may still be about to write older counts.
            self._is_finished = True
            self.counts_file.write(self._counts())

    def note_offsets(self) -> None:
        """Notes the consumer offsets of CID_RMQ_SYS_TRANS, and commits them when all records before them are on disk."""
        take_backs = self.messages.counts.take_backs
        if self._noted is None or self._noted.take_backs != take_backs:
            self._noted = _NotedOffsets(self.messages.table.advance_offsets(), self.messages.appended_position, take_backs)
        if self.store.flushed_position >= self._noted.position:
            self._kept = self._noted.offsets
            half_queue_offset, op_queue_offset = self._kept
            group = topics.TRANSACTION_CONSUMER_GROUP
            self.consumer_offsets.commit(group, topics.HALF_TOPIC, 0, half_queue_offset)
            self.consumer_offsets.commit(group, topics.OP_HALF_TOPIC, 0, op_queue_offset)
            self._noted = None

    def _write_counts(self, counts: dict[str, Any]) -> None:
        with self._counts_turn:
            if not self._is_finished:
                self.counts_file.write(counts)

    def _changed_counts(self) -> dict[str, Any] | None:
        changes = self.checks_in_flight.changes
        if changes == self._changes_kept:
            return None
        self._changes_kept = changes
        return self._counts()

    def _counts(self) -> dict[str, Any]:
        return check_counts_as_json(self.messages, self.checks_in_flight.unanswered())
