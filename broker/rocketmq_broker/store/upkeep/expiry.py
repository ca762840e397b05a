"""Room on the disk: commit log segments expire, and with them their entries in consume queues and index."""

from __future__ import annotations

from collections.abc import Iterator

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.retention import next_removal_ms, removable
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.results import Expired, Trimmed
from rocketmq_broker.store.settings import StoreConfig
from rocketmq_broker.store.writability import Writability


class Expiry:
    """The expiry of data. It drops the data, and leaves the deletion of the files to its caller."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: Index,
        config: StoreConfig,
        files: FileSystem,
        writability: Writability,
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._config = config
        self._files = files
        self._writability = writability

    def expire(self, now_ms: int, needed_from: int | None = None, *, at_any_hour: bool = False) -> Expired:
        """Drops commit log segments that may go; to be called every few seconds. Admits messages by the disk's used space.

        The segment with `needed_from` and later ones stay. `trim` follows, then the deletion of all files named. Raises OSError.
        """
        self._writability.refuse_if_given_up()
        ratio = self.look_at_disk()
        removal = removable(self._log, self._config, now_ms, ratio, needed_from, at_any_hour=at_any_hour)
        return Expired(self._log.segments.forget_before(removal.end), removal.unexpired, removal.youngest_ms)

    def next_due_ms(self, now_ms: int) -> int | None:
        """Returns when `expire` may next drop a segment, if nothing is stored until then; None for never. Raises OSError."""
        return next_removal_ms(self._log, self._config, now_ms, self.disk_used_ratio())

    def trim(self) -> Iterator[Trimmed]:
        """Drops the entries of dropped messages from consume queues and index, one file or queue a step."""
        yield from self._queues.trim(self._log.min_offset)
        yield Trimmed(self._index.forget_before(self._log.min_offset), 0)

    def look_at_disk(self) -> float:
        """Admits or refuses messages by the disk's used ratio, 0 to 1, and returns it. Raises OSError."""
        ratio = self.disk_used_ratio()
        self._writability.note_disk(ratio, self._config.disk_full_ratio)
        return ratio

    def disk_used_ratio(self) -> float:
        """Returns how full the store's disk is, 0 to 1; with a separate disk for the commit log, that of the fuller one."""
        directories = filter(self._files.is_directory, (self._config.root, self._config.commit_log_directory))
        return max(map(self._files.used_ratio, directories), default=0.0)
