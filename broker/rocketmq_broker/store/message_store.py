"""The broker's message store (RocketMQ's DefaultMessageStore). Its base class `StoreReader` provides the reading methods.

A message is stored in four steps. `append` adds its record to a batch in memory. `write` passes the batch to the file system. A
flush syncs the batch to the disk. `publish` makes the message visible to readers.
"""

import errno
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from rocketmq_broker.message import topics
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.properties import MAX_PROPERTIES_LENGTH
from rocketmq_broker.message.record import size_of
from rocketmq_broker.message.sysflag import TRANSACTION_MASK
from rocketmq_broker.store.backlog import Backlog
from rocketmq_broker.store.errors import IllegalMessage, StoreUnwritable
from rocketmq_broker.store.files import FileSystem, OpenFiles, OsFileSystem
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.segments import Segments
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.dispatch import VISIBILITY, DispatchRequest, unit_tags_code
from rocketmq_broker.store.queues.topic_folders import TopicFolders
from rocketmq_broker.store.recovery.damaged_units import DamagedUnits
from rocketmq_broker.store.recovery.durable_state import DurableState
from rocketmq_broker.store.recovery.recovery import recover
from rocketmq_broker.store.recovery.report import RecoveryReport
from rocketmq_broker.store.recovery.store_lock import StoreLock
from rocketmq_broker.store.results import Appended
from rocketmq_broker.store.settings import StoreConfig
from rocketmq_broker.store.store_reader import StoreReader
from rocketmq_broker.store.upkeep.checkpoint_rounds import CheckpointRounds
from rocketmq_broker.store.upkeep.expiry import Expiry
from rocketmq_broker.store.upkeep.segment_ahead import SegmentAhead
from rocketmq_broker.store.writability import Writability

ArrivalListener = Callable[[bytes, int, int, int], None]
"""A callback with the topic, the queue id, the queue's new max offset, and the size of the new records in bytes."""


class MessageStore(StoreReader):
    """An open store. Topics are bytes, as in records. Not thread-safe."""

    def __init__(self, config: StoreConfig, files: FileSystem) -> None:
        """Creates the parts of a store. Use `open` to open a store."""
        self.config = config
        self.arrival_listener: ArrivalListener | None = None
        self._files = files
        self._store_host = config.store_host
        self._max_message_size = config.max_message_size
        self._open_files = OpenFiles(files, config.max_open_files)
        log = CommitLog(Segments(config.commit_log_directory, config.commit_log_segment_size, self._open_files))
        self.lock = StoreLock(files, config.root, config.commit_log_directory)
        """The locks on the store. The caller must check them about once a second, and call `give_up` if they are lost."""
        queues = ConsumeQueueTable(config, self._open_files, TopicFolders(config.consume_queue_directory, self.lock.file, files))
        index = Index(config, self._open_files)
        super().__init__(log, queues, index, DamagedUnits(log, queues, config.delay_levels_ms))
        self._durable = DurableState(config.root, files)
        self._is_open = False
        self._backlog = Backlog()
        self.writability = Writability()
        """The state that decides whether the store accepts messages, and the reason if it does not."""
        self.checkpoints = CheckpointRounds(log, queues, index, self._backlog, self._durable, self._open_files, self.writability)
        """Writes checkpoints, so that the next start need not read the whole log."""
        self.expiry = Expiry(log, queues, index, config, files, self.writability)
        """Removes expired segments to free disk space."""
        self.next_segment = SegmentAhead(log, config, files, self.writability)
        """Creates the commit log's next segment before it is needed."""
        self.recovery: RecoveryReport

    @classmethod
    def open(cls, config: StoreConfig, files: FileSystem | None = None) -> "MessageStore":
        """Opens or creates the store under `config.root`, and recovers it after a crash. Sets `recovery` to a report.

        Raises OSError, StoreLocked if another broker has the store open, or DamagedStore if recovery could lose messages.
        """
        store = cls(config, files or OsFileSystem())
        complaints = store.lock.acquire()  # first: another broker may still be writing the files that recovery reads and repairs
        try:
            store.recovery = recover(store._log, store._queues, store._index, store._durable, config)
            store.recovery.actions += complaints
            # Recovery has synced the log, so all of it counts as flushed. Each queue continues after its last message.
            store._log.flushed_position = store._log.written_position
            store._backlog.next_offsets = store._queues.max_offsets()
            store.checkpoints.last_store_timestamp = store.recovery.last_store_timestamp
            store.checkpoints.believed_ms = lambda: store.recovery.believed_ms
            store.expiry.check_disk()
        except BaseException:
            store._open_files.close()
            store.lock.release()
            raise
        store._is_open = True
        return store

    def close(self) -> None:
        """Flushes everything and marks the store as cleanly stopped. Does nothing if the store is already closed.

        If the flush fails, the store stays marked as crashed, and the next `open` recovers it.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            if not self.writability.is_broken:
                with suppress(StoreUnwritable, OSError):
                    self.flush()
                    if not self.checkpoints.is_distrusted:
                        self._durable.mark_stopped()
        finally:
            self._open_files.close()
            self.lock.release()

    def append(
        self, message: InnerMessage, store_timestamp: int, *, was_accepted: bool = False, may_use_reserve: bool = False
    ) -> Appended:
        """Adds a message's record to the batch. The record is lost unless `write` is called.

        `was_accepted` is True for a message that is only moved within the store. Such a message may exceed the size limit, which
        may have been lowered since the message was sent. With `may_use_reserve`, the message may use the disk space that is
        reserved for the ends of transactions and for due delayed messages. Raises IllegalMessage or StoreUnwritable.
        """
        writability = self.writability
        if writability.refusal is not None and (writability.is_everything_refused or not may_use_reserve):
            raise StoreUnwritable(writability.refusal)
        topic, queue_id, properties, log = message.topic, message.queue_id, message.properties, self._log
        key = (topic, queue_id)
        queue_offset = self._backlog.next_offsets.get(key)
        if queue_offset is None:
            _check_queue_name(topic, queue_id)
            self.check_folder(topic.decode())
            queue_offset = 0
        size = size_of(message, self._store_host)
        if len(message.body) > self._max_message_size or len(properties) > MAX_PROPERTIES_LENGTH or not log.fits(size):
            _check_size(message, size, log, self.config, was_accepted=was_accepted)
        is_queued, is_indexed = VISIBILITY[message.sys_flag & TRANSACTION_MASK]
        if not is_queued:
            queue_offset = 0
        commit_log_offset = log.reserve(size)
        end = log.add(message, size, queue_offset, store_timestamp, self._store_host)
        tags_code = message.tags_code
        if tags_code is None:
            tags_code = unit_tags_code(topic, properties, store_timestamp, self.config.delay_levels_ms)
        self._backlog.requests.append(
            DispatchRequest(
                topic, queue_id, queue_offset, commit_log_offset, size, tags_code, store_timestamp, properties,
                is_queued, is_indexed,
            )
        )  # fmt: skip
        if is_queued:
            self._backlog.next_offsets[key] = queue_offset + 1
        return Appended(commit_log_offset, queue_offset, end)

    def write(self) -> int:
        """Writes the batch to the files, without syncing or publishing it. Returns the position after the batch.

        Raises StoreUnwritable if no part of the batch was stored. The next records reuse the positions and queue offsets of the
        batch.
        """
        self.writability.refuse_if_given_up()
        try:
            if self.writability.is_failing and self._log.end > self._log.written_position:
                raise StoreUnwritable(self.writability.refusal or "")
            return self._log.write()
        except (OSError, StoreUnwritable) as error:
            self._backlog.forget_after(self._log.written_position)
            self._log.drop_batch()
            if isinstance(error, StoreUnwritable):
                raise
            raise StoreUnwritable(f"cannot write to the commit log: {_reason(error)}") from error

    def publish(self, position: int) -> None:
        """Makes the records that end at or before `position` visible to readers, and calls the arrival listener."""
        ready = self._backlog.take(position)
        if not ready:
            return
        runs: defaultdict[tuple[bytes, int], list[DispatchRequest]] = defaultdict(list)
        for request in ready:
            if request.is_queued:
                runs[request.topic, request.queue_id].append(request)
        # Queues come before index and listener, because the listener must be able to pull the new message.
        queues = {key: self._queues.put_run(key, run) for key, run in runs.items()}
        self.checkpoints.last_store_timestamp = ready[-1].store_timestamp
        self._index.add(ready)
        if self.arrival_listener is not None:
            for key, run in runs.items():
                self.arrival_listener(*key, queues[key].max_offset, sum([request.size for request in run]))

    @property
    def is_index_behind(self) -> bool:
        """Returns whether the index is so far behind that `feed_index` must be called before the next `publish`."""
        return self._index.is_behind

    def feed_index(self) -> None:
        """Adds some of the waiting messages to the index. Takes about ten milliseconds at most."""
        self._index.feed()

    @property
    def files(self) -> FileSystem:
        """Returns the store's file system."""
        return self._files

    @property
    def written_position(self) -> int:
        """Returns the commit log offset up to which everything is written to the files."""
        return self._log.written_position

    @property
    def flushed_position(self) -> int:
        """Returns the commit log offset up to which everything is on disk."""
        return self._log.flushed_position

    def segments_to_flush(self, from_position: int, to_position: int) -> list[Path]:
        """Returns the commit log files to sync so that the bytes from `from_position` up to `to_position` are durable.

        After a failed flush, first writes the kept data again, because the kernel may have dropped it. Raises OSError.
        """
        if self.writability.is_failing:
            self._log.write_again()
        return self._log.segments.paths_between(from_position, to_position)

    def mark_flushed(self, position: int) -> None:
        """Records that everything before `position` is on disk."""
        self._log.flushed(position)
        if self.writability.is_failing:
            self.writability.note_flush(None)

    def keep_unflushed(self) -> None:
        """Keeps written data in memory until it is flushed.

        Used for ASYNC_FLUSH, which acknowledges messages before their flush.
        """
        self._log.keeps_unflushed = True

    def note_flush_failed(self, reason: str) -> None:
        """Refuses all messages until a flush succeeds, because acknowledged data is not on disk. `reason` is the error text."""
        unflushed = self._log.written_position - self._log.flushed_position
        self.writability.note_flush(
            f"{reason}; messages are refused until a flush succeeds, and {unflushed} bytes that were acknowledged are kept in "
            "memory to be written again"
        )

    def abandon_unflushed(self) -> None:
        """Drops data that was written but could not be flushed. None of this data may be published yet.

        If the files cannot be truncated either, the store refuses all writes until it is opened again. It can still be read.
        """
        position = self.flushed_position
        self._backlog.forget_after(position)
        try:
            self._log.drop_after(position)
        except OSError as error:
            self.refuse_writes(f"the disk failed, and the unflushed data cannot be removed: {_reason(error)}")

    def refuse_writes(self, reason: str) -> None:
        """Refuses all writes until the store is opened again, which recovers its data. `reason` is the error text."""
        self.writability.break_for_good(reason)

    def give_up(self, reason: str) -> None:
        """Refuses all writes and leaves all files unchanged, because another broker may be using them.

        Messages that were appended or written but not published are lost. The store stays marked as crashed.
        """
        self._queues.may_repair_on_disk = False
        self.writability.give_up(reason)
        self._backlog.forget_after(self.flushed_position)
        self._log.drop_batch()

    @property
    def unpublished(self) -> int:
        """Returns the number of appended messages that are not visible yet."""
        return len(self._backlog.requests)

    def close_files(self) -> None:
        """Closes all cached files. The store opens them again when needed."""
        self._open_files.close()

    def flush(self) -> None:
        """Writes the batch, and syncs commit log, consume queues, index and checkpoint. Blocks.

        Does not publish the messages; the caller must do that. Raises StoreUnwritable.
        """
        self.write()
        try:
            self._sync_all()
        except OSError as error:
            raise StoreUnwritable(f"cannot flush the store: {_reason(error)}") from error

    def next_offset(self, topic: bytes, queue_id: int) -> int:
        """Returns the queue offset of the next message. It exceeds `max_offset` while messages are not visible yet."""
        return self._backlog.next_offsets.get((topic, queue_id), 0)

    def check_folder(self, topic: str, others: Iterable[str] = ()) -> None:
        """Raises IllegalMessage if the file system cannot store the topic's folder.

        The system may reject the folder's name, or treat it as equal to the name of another stored topic or of one in
        `others`.
        """
        stored = (name.decode() for name, _ in self._backlog.next_offsets)
        self._queues.folders.check(topic, chain(stored, others))

    def forget_topic(self, topic: bytes) -> list[Path]:
        """Drops a topic's queues. Returns the paths to delete, in deletion order. Raises StoreUnwritable.

        The topic's records expire with the commit log (cleanUnusedTopic). No checkpoint may begin before all paths are deleted.
        Until `ROUNDS` more checkpoints have ended, recovery may restore the queues.
        """
        self.writability.refuse_if_given_up()
        self._backlog.forget_topic(topic)
        return self._queues.forget_topic(topic)

    def _sync_all(self) -> None:
        position = self._log.written_position
        try:
            for path in self.segments_to_flush(self.flushed_position, position):
                self._files.sync(self._open_files.get(path))
        except OSError:
            # A second sync may report success although the data is lost, so the next start must check it.
            self.checkpoints.distrust()
            raise
        self.mark_flushed(position)
        self.checkpoints.run_all()


def _check_size(message: InnerMessage, size: int, log: CommitLog, config: StoreConfig, *, was_accepted: bool) -> None:
    body_length, properties_length = len(message.body), len(message.properties)
    if properties_length > MAX_PROPERTIES_LENGTH:
        raise IllegalMessage(f"message properties too long: {properties_length} bytes, at most {MAX_PROPERTIES_LENGTH}")
    if not log.fits(size):
        segment_size = config.commit_log_segment_size
        raise IllegalMessage(f"record too long: {size} bytes do not fit into a commit log segment of {segment_size} bytes")
    if not was_accepted:
        raise IllegalMessage(f"message body too long: {body_length} bytes, at most {config.max_message_size}")


def _check_queue_name(topic: bytes, queue_id: int) -> None:
    topics.validate_topic(topic.decode(errors="replace"))
    if queue_id < 0:
        raise IllegalMessage(f"queue id must not be negative: {queue_id}")


def _reason(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "") + " " + (error.strerror or str(error))
