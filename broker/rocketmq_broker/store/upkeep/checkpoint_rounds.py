"""Checkpoints, which make consume queues and index durable, so that the next recovery is short.

A round has these steps, in this order: `begin`, all steps of `write_queues`, a sync of the yielded paths,
`write_index`, a sync of the returned paths, and `finish`. Only the syncs block on the disk.

After a failed sync, the kernel may drop the written data and report success for the next sync. Therefore no state
is saved after a failed sync. The next start continues from the last saved state, and completes queues and index
from the commit log.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rocketmq_broker.store.backlog import Backlog
from rocketmq_broker.store.files import OpenFiles
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.unit_files import Unsynced
from rocketmq_broker.store.recovery.durable_state import DurableMark, DurableState
from rocketmq_broker.store.writability import Writability

ROUNDS: Final = Index.STAGES
"""The number of rounds after which recovery need not read records that were published before the first of these rounds."""


class CheckpointRounds:
    """Runs checkpoint rounds, one after the other. If a round is interrupted, the next one completes its work."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: Index,
        backlog: Backlog,
        durable: DurableState,
        open_files: OpenFiles,
        writability: Writability,
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._backlog = backlog
        self._durable = durable
        self._open_files = open_files
        self._writability = writability
        self._saved_state: object = None
        self._unsynced: dict[Path, None] = {}
        self._unsynced_directories: dict[Path, None] = {}
        self._latest_mark: DurableMark | None = None
        self.is_distrusted = False
        """Whether a sync failed. If so, the store stays marked as crashed, and no state is saved until it is opened again."""
        self.last_store_timestamp = 0
        """The store timestamp of the last visible message, in milliseconds since the epoch."""
        self.believed_ms: Callable[[], int | None] = lambda: None
        """Returns the time of the broker's ExpiryClock, in milliseconds since the epoch, or None if unknown.

        The time is saved, so that after a restart the broker does not trust a system clock that has jumped.
        """

    def distrust(self) -> None:
        """Stops saving states until the store is opened again, because a sync failed."""
        self.is_distrusted = True
        self._index.distrust()

    def begin(self) -> DurableMark:
        """Begins a round. Returns the state of the store, which `finish` saves for the next recovery. Raises StoreUnwritable."""
        self._writability.refuse_if_given_up()
        self._latest_mark = DurableMark(
            position=min(self._backlog.first_offset(self._log.flushed_position), self._log.flushed_position),
            store_timestamp=self.last_store_timestamp,
            max_offsets=self._queues.max_offsets(),
            believed_ms=self.believed_ms(),
        )
        return self._latest_mark

    def write_queues(self) -> Iterator[Unsynced]:
        """Writes waiting consume queue units to the files, one queue at each step. The store may be used between two steps.

        Yields the files to sync, and the directories with new names to sync after them. Includes the paths of earlier rounds that
        were not finished. Raises OSError or StoreUnwritable.
        """
        for unsynced in self._queues.write():
            self._writability.refuse_if_given_up()
            self._unsynced.update(dict.fromkeys(unsynced.files))
            self._unsynced_directories.update(dict.fromkeys(unsynced.directories))
            yield unsynced

    def unsynced_queues(self) -> Unsynced:
        """Returns all paths from `write_queues` that no finished round has synced yet."""
        return Unsynced(list(self._unsynced), list(self._unsynced_directories))

    def write_index(self) -> Unsynced:
        """Writes waiting index entries to the files. Returns the paths to sync. Raises OSError or StoreUnwritable."""
        self._writability.refuse_if_given_up()
        return self._index.write()

    def finish(self, mark: DurableMark, queues: Unsynced) -> Callable[[], None] | None:
        """Ends a round after the syncs. `queues` contains the synced paths of the consume queues. Raises OSError.

        Returns a function that saves the position where the next recovery begins, or None if there is nothing to save. The
        function writes two files, may run on any thread, and raises OSError. Nothing is saved if `mark` is not from the latest
        round, because a topic may have been deleted since.
        """
        if mark is not self._latest_mark or self._writability.is_given_up:
            return None
        for path in queues.files:
            self._unsynced.pop(path, None)
        for path in queues.directories:
            self._unsynced_directories.pop(path, None)
        index = self._index
        index.mark_synced()
        state = (mark.position, index.durable_offset, mark.max_offsets)
        if state == self._saved_state or self.is_distrusted:
            return None
        index_state = index.durable_offset, index.durable_end_offset, index.durable_end_timestamp

        def save() -> None:
            self._durable.save(mark, *index_state)
            self._saved_state = state

        return save

    def run_all(self) -> None:
        """Runs all rounds, one after the other. Blocks. Raises OSError or StoreUnwritable."""
        self._index.begin_rounds()
        for _ in range(ROUNDS):
            mark = self.begin()
            for _ in self.write_queues():
                pass
            queues = self.unsynced_queues()
            self._sync(queues)
            self._sync(self.write_index())
            if save := self.finish(mark, queues):
                save()

    def _sync(self, unsynced: Unsynced) -> None:
        files = self._open_files.files
        for path in unsynced.files:
            if files.size(path) is not None:  # Otherwise the queue's topic was deleted, or the file expired.
                file = self._open_files.get(path)
                try:
                    files.sync(file)
                except OSError:
                    self.distrust()
                    raise
        for path in unsynced.directories:
            if files.is_directory(path):
                files.sync_directory(path)
