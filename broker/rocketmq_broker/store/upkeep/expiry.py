"""Making room on the disk: commit log segments expire, and what consume queues and index hold of them goes with them."""

from __future__ import annotations

from collections.abc import Iterator

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.retention import removable
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.results import Expired, Trimmed
from rocketmq_broker.store.settings import StoreConfig
from rocketmq_broker.store.writability import Writability


class Expiry:
    """Forgets first what may go, and leaves the deletion of the files to its caller."""

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
        """Forgets commit log segments that may go; call it every few seconds. Refuses or admits messages by how full the disk is.

        Nothing goes that lies behind `needed_from`. `trim` follows, and then the deletion of all files named. Raises OSError.
        """
        self._writability.refuse_if_given_up()
        ratio = self.look_at_disk()
        removal = removable(self._log, self._config, now_ms, ratio, needed_from, at_any_hour=at_any_hour)
        return Expired(self._log.segments.forget_before(removal.end), removal.unexpired, removal.youngest_ms)

    def trim(self) -> Iterator[Trimmed]:
        """Forgets what consume queues and index hold of messages that the commit log has forgotten, one file or queue a step."""
        yield from self._queues.trim(self._log.min_offset)
        yield Trimmed(self._index.forget_before(self._log.min_offset), 0)

    def look_at_disk(self) -> float:
        """Refuses or admits messages by how full the disk is, 0 to 1, and answers that. Raises OSError."""
        ratio = self.disk_used_ratio()
        self._writability.note_disk(ratio, self._config.disk_full_ratio)
        return ratio

    def disk_used_ratio(self) -> float:
        """How full the store's disk is, 0 to 1; the fuller one counts if the commit log has a disk of its own."""
        directories = filter(self._files.is_directory, (self._config.root, self._config.commit_log_directory))
        return max(map(self._files.used_ratio, directories), default=0.0)
