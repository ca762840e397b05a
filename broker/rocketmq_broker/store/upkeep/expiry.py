"""Removes expired commit log segments, and their entries in consume queues and index."""

from collections.abc import Iterator
from dataclasses import dataclass

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.retention import next_removal_ms, removable
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.results import Expired, Trimmed
from rocketmq_broker.store.settings import StoreConfig
from rocketmq_broker.store.writability import Writability


@dataclass(frozen=True, slots=True)
class Expiry:
    """Drops expired data from the store. The caller deletes the files."""

    log: CommitLog
    queues: ConsumeQueueTable
    index: Index
    config: StoreConfig
    files: FileSystem
    writability: Writability

    def expire(self, now_ms: int, needed_from: int | None = None, *, at_any_hour: bool = False) -> Expired:
        """Checks the disk like `check_disk`, and drops expired commit log segments. Raises OSError.

        Call it every few seconds. Keeps the segment that contains `needed_from`, and later segments. Afterwards, call
        `trim`, and then delete the files that both methods returned.
        """
        self.writability.refuse_if_given_up()
        ratio = self.check_disk()
        removal = removable(self.log, self.config, now_ms, ratio, needed_from, at_any_hour=at_any_hour)
        return Expired(self.log.segments.forget_before(removal.end), removal.unexpired, removal.youngest_ms)

    def next_due_ms(self, now_ms: int) -> int | None:
        """Returns the time at which `expire` may next drop a segment, in milliseconds since the epoch.

        Returns None if no segment can be dropped. The time is valid until a message is stored. Raises OSError.
        """
        return next_removal_ms(self.log, self.config, now_ms, self.disk_used_ratio())

    def trim(self) -> Iterator[Trimmed]:
        """Drops the entries of expired messages, one consume queue or the index at each step. Yields the dropped parts."""
        yield from self.queues.trim(self.log.min_offset)
        yield Trimmed(self.index.forget_before(self.log.min_offset), 0)

    def check_disk(self) -> float:
        """Makes the store refuse messages if the disk is too full, and accept them otherwise.

        Returns the ratio of used space, 0 to 1. Raises OSError.
        """
        ratio = self.disk_used_ratio()
        self.writability.note_disk(ratio, self.config.disk_full_ratio)
        return ratio

    def disk_used_ratio(self) -> float:
        """Returns the ratio of used space on the store's disk, 0 to 1.

        If the commit log has its own disk, returns the higher of the two ratios.
        """
        directories = filter(self.files.is_directory, (self.config.root, self.config.commit_log_directory))
        return max(map(self.files.used_ratio, directories), default=0.0)
