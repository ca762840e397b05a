"""Creates the commit log's next segment before it is needed (RocketMQ's AllocateMappedFileService)."""

from collections.abc import Callable
from functools import partial

from rocketmq_broker.store.files import FileSystem, create_file
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.settings import StoreConfig
from rocketmq_broker.store.writability import Writability


class SegmentAhead:
    """Decides when to create the next segment, and adds it to the log."""

    def __init__(self, log: CommitLog, config: StoreConfig, files: FileSystem, writability: Writability) -> None:
        self._log = log
        self._config = config
        self._files = files
        self._writability = writability

    @property
    def prepare_from(self) -> int:
        """Returns the commit log position at which the next segment should be created, at 3/4 of the last segment."""
        return self._log.segments.end - self._config.commit_log_segment_size // 4

    def to_prepare(self) -> tuple[int, Callable[[], None]] | None:
        """Returns the next segment's start and a function that creates the segment, or None if it is too early.

        The function may run on any thread, and raises OSError. Call `adopt` after it. The first segment is due immediately.
        """
        segments, position = self._log.segments, self._log.written_position
        if self._writability.is_given_up or (segments.starts and position < self.prepare_from):
            return None
        start = segments.end if segments.starts else segments.start_of(position)
        return start, partial(create_file, self._files, segments.path(start), segments.segment_size)

    def adopt(self, start: int) -> None:
        """Adds the prepared segment to the commit log."""
        if not self._writability.is_given_up:
            self._log.segments.adopt(start)
