"""The store as the broker sees it (RocketMQ's DefaultMessageStore); reading is in `StoreReader`.

A message passes four stations: `append` puts its record into a batch in memory, `write` hands the batch to the file
system, a flush brings it to the disk, `publish` shows it to readers.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from broker.message import topics
from broker.message.inner_message import InnerMessage
from broker.message.properties import MAX_PROPERTIES_LENGTH
from broker.message.record import encode_message, size_of
from broker.message.sysflag import TRANSACTION_MASK
from broker.store.errors import IllegalMessage, StoreUnwritable
from broker.store.files import FileSystem, OpenFiles, OsFileSystem, create_file
from broker.store.index.index import Index
from broker.store.log.commit_log import CommitLog
from broker.store.log.retention import removable
from broker.store.log.segments import Segments
from broker.store.queues.consume_queue_table import ConsumeQueueTable
from broker.store.queues.dispatch import VISIBILITY, DispatchRequest, unit_tags_code
from broker.store.queues.unit_files import Unsynced
from broker.store.recovery.damaged_units import DamagedUnits
from broker.store.recovery.durable_state import DurableMark, DurableState
from broker.store.recovery.recovery import recover
from broker.store.recovery.report import RecoveryReport
from broker.store.recovery.store_lock import StoreLock
from broker.store.results import Appended, Expired, Trimmed
from broker.store.settings import StoreConfig
from broker.store.store_reader import StoreReader
from broker.store.writability import Writability

ArrivalListener = Callable[[bytes, int, int, int], None]
"""Told of a topic, a queue id, the queue's new max offset, and how many bytes the new records have."""


class MessageStore(StoreReader):
    """One open store. Topics are bytes, as records hold them. Not safe for use from several threads."""

    CHECKPOINT_ROUNDS = Index.STAGES
    """So many rounds, from `begin_checkpoint` to `finish_checkpoint`, spare recovery all that was published before them."""

    def __init__(self, config: StoreConfig, files: FileSystem) -> None:
        """See `open`."""
        self.config = config
        self.arrival_listener: ArrivalListener | None = None
        self._files = files
        self._store_host = config.store_host
        self._max_message_size = config.max_message_size
        self._open_files = OpenFiles(files, config.max_open_files)
        log = CommitLog(Segments(config.commit_log_directory, config.commit_log_segment_size, self._open_files))
        queues = ConsumeQueueTable(config, self._open_files)
        super().__init__(log, queues, Index(config, self._open_files), DamagedUnits(log, queues, config.delay_levels_ms))
        self._durable = DurableState(config.root, files)
        self._lock = StoreLock(files, config.root, config.commit_log_directory)
        self._is_open = False
        self._is_given_up = False
        self._next_offsets: dict[tuple[bytes, int], int] = {}
        self._unpublished: list[DispatchRequest] = []
        self._writability = Writability()
        self._last_store_timestamp = 0
        self._saved_state: object = None
        self._unsynced: dict[Path, None] = {}
        self._unsynced_directories: dict[Path, None] = {}
        self._latest_mark: DurableMark | None = None
        self.flushed_position = 0
        """Everything before it is on disk."""
        self.recovery: RecoveryReport

    @classmethod
    def open(cls, config: StoreConfig, files: FileSystem | None = None) -> MessageStore:
        """Opens or creates the store under `config.root`, recovers what a crash left, and says so in `recovery`.

        Raises StoreLocked if another broker has it open, DamagedStore if it cannot be opened without guessing, OSError.
        """
        store = cls(config, files or OsFileSystem())
        complaints = store._lock.acquire()
        try:
            store.recovery = recover(store._log, store._queues, store._index, store._durable, config)
            store.recovery.actions += complaints
            store._begin()
        except BaseException:
            store._open_files.close()
            store._lock.release()
            raise
        store._is_open = True
        return store

    def close(self) -> None:
        """Brings everything to the disk and marks the store as cleanly stopped; safe to call twice.

        Where the disk refuses, the store stays marked as crashed, and the next `open` recovers it.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            if not self._writability.is_broken:
                with suppress(StoreUnwritable, OSError):
                    self.flush()
                    self._durable.mark_stopped()
        finally:
            self._open_files.close()
            self._lock.release()

    def append(
        self, message: InnerMessage, store_timestamp: int, *, was_accepted: bool = False, may_use_reserve: bool = False
    ) -> Appended:
        """Puts a message's record into the batch; it is lost unless `write` follows.

        A message that `was_accepted` is only moved: the size allowed may have become less since. What ends a transaction, or was
        delayed and is due, `may_use_reserve`: it is stored on a full disk as long as there is room kept for it. Raises
        IllegalMessage, StoreUnwritable.
        """
        writability = self._writability
        if writability.refusal is not None and (writability.is_everything_refused or not may_use_reserve):
            raise StoreUnwritable(writability.refusal)
        topic, queue_id, properties, log = message.topic, message.queue_id, message.properties, self._log
        key = (topic, queue_id)
        queue_offset = self._next_offsets.get(key)
        if queue_offset is None:
            _check_queue_name(topic, queue_id)
            queue_offset = 0
        size = size_of(message, self._store_host)
        if len(message.body) > self._max_message_size or len(properties) > MAX_PROPERTIES_LENGTH or not log.fits(size):
            self._check_size(len(message.body), len(properties), size, was_accepted=was_accepted)
        is_queued, is_indexed = VISIBILITY[message.sys_flag & TRANSACTION_MASK]
        if not is_queued:
            queue_offset = 0
        commit_log_offset = log.reserve(size)
        end = log.add(encode_message(message, size, queue_offset, commit_log_offset, store_timestamp, self._store_host))
        tags_code = message.tags_code
        if tags_code is None:
            tags_code = unit_tags_code(topic, properties, store_timestamp, self.config.delay_levels_ms)
        self._unpublished.append(
            DispatchRequest(
                topic, queue_id, queue_offset, commit_log_offset, size, tags_code, store_timestamp, properties,
                is_queued, is_indexed,
            )
        )  # fmt: skip
        if is_queued:
            self._next_offsets[key] = queue_offset + 1
        return Appended(commit_log_offset, queue_offset, end)

    def write(self) -> int:
        """Writes the batch and answers the position after it. In the files, not yet on disk, not yet visible.

        Raises StoreUnwritable, and then nothing of the batch was stored: positions and queue offsets go back.
        """
        self._refuse_if_given_up()
        try:
            return self._log.write()
        except OSError as error:
            self._forget_after(self._log.written_position)
            self._log.drop_batch()
            raise StoreUnwritable(f"cannot write to the commit log: {_reason(error)}") from error

    def publish(self, position: int) -> None:
        """Makes what ends at or before `position` visible to readers, and tells the arrival listener."""
        ready = self._take_unpublished(position)
        if not ready:
            return
        touched = {}
        sizes: defaultdict[tuple[bytes, int], int] = defaultdict(int)
        put = self._queues.put
        for request in ready:
            if request.is_queued:
                key = (request.topic, request.queue_id)
                touched[key] = put(request)
                sizes[key] += request.size
        self._last_store_timestamp = ready[-1].store_timestamp
        self._index.add(ready)
        if self.arrival_listener is not None:
            for key, queue in touched.items():
                self.arrival_listener(*key, queue.max_offset, sizes[key])

    @property
    def written_position(self) -> int:
        """Everything before it is in the files."""
        return self._log.written_position

    def segments_to_flush(self, from_position: int, to_position: int) -> list[Path]:
        """The commit log files whose sync makes [from_position, to_position) durable."""
        return self._log.segments.paths_between(from_position, to_position)

    @property
    def prepare_from(self) -> int:
        """The commit log position from which on the next segment should be made: three quarters through the last one."""
        return self._log.segments.end - self.config.commit_log_segment_size // 4

    def segment_to_prepare(self) -> tuple[int, Callable[[], None]] | None:
        """Where the next segment begins, and what makes it, on any thread, and raises OSError; None if it is too early.

        `adopt_segment` follows. A first segment is made at once.
        """
        segments, position = self._log.segments, self._log.written_position
        if self._is_given_up or (segments.starts and position < self.prepare_from):
            return None
        start = segments.end if segments.starts else segments.start_of(position)
        return start, partial(create_file, self._files, segments.path(start), segments.segment_size)

    def adopt_segment(self, start: int) -> None:
        """The segment was made."""
        if not self._is_given_up:
            self._log.segments.adopt(start)

    def mark_flushed(self, position: int) -> None:
        """Takes note that everything before `position` is on disk."""
        self.flushed_position = max(self.flushed_position, position)

    def abandon_unflushed(self) -> None:
        """Drops what was written but could not be flushed: nothing of it counts, and none of it may be published already.

        Where that fails too, the store refuses all writes until it is opened again; reads go on.
        """
        position = self.flushed_position
        self._forget_after(position)
        try:
            self._log.drop_after(position)
        except OSError as error:
            self.refuse_writes(f"the disk failed, and what was not flushed cannot be taken back: {_reason(error)}")

    def refuse_writes(self, reason: str) -> None:
        """Stores nothing more until the store is opened again, which recovers it."""
        self._writability.break_for_good(reason)

    def what_is_wrong_with_the_lock(self) -> str | None:
        """Why another broker may be using the store, or None. Ask every second or so, and `give_up` if there is a reason."""
        return self._lock.what_is_wrong()

    def give_up(self, reason: str) -> None:
        """Stores nothing more and leaves all files as they are: another broker may be using them.

        What was appended or written but not made visible is lost to this broker. The store stays marked as crashed.
        """
        self._is_given_up = True
        self._queues.may_mend_on_disk = False
        self.refuse_writes(reason)
        self._forget_after(self.flushed_position)
        self._log.drop_batch()

    def note_busy(self, reason: str | None) -> None:
        """Refuses everything for now, for that reason; None ends it."""
        self._writability.note_busy(reason)

    @property
    def is_busy(self) -> bool:
        """Whether `note_busy` gave a reason."""
        return self._writability.is_busy

    @property
    def unpublished(self) -> int:
        """How many messages were appended and are not visible yet."""
        return len(self._unpublished)

    def close_files(self) -> None:
        """Gives back all file descriptors that can be had again."""
        self._open_files.close()

    @property
    def is_given_up(self) -> bool:
        """Whether `give_up` was called."""
        return self._is_given_up

    @property
    def refusal(self) -> str | None:
        """Why nothing is stored at present, or None."""
        return self._writability.refusal

    def flush(self) -> None:
        """Brings everything to the disk: commit log, consume queues, index, checkpoint. Blocks.

        What was appended is written first; publishing is the caller's. Raises StoreUnwritable.
        """
        self.write()
        try:
            self._sync_all()
        except OSError as error:
            raise StoreUnwritable(f"cannot flush the store: {_reason(error)}") from error

    def begin_checkpoint(self) -> DurableMark:
        """Takes note of a state that `finish_checkpoint` saves for the next recovery, after these steps in this order:

        all of `write_queues`, a sync of what it named, `write_index`, a sync of what that named. Only the syncs block on the
        disk. Raises StoreUnwritable.
        """
        self._refuse_if_given_up()
        published = self._unpublished[0].commit_log_offset if self._unpublished else self._log.written_position
        self._latest_mark = DurableMark(
            position=min(published, self.flushed_position),
            store_timestamp=self._last_store_timestamp,
            max_offsets=self._queues.max_offsets(),
        )
        return self._latest_mark

    def write_queues(self) -> Iterator[Unsynced]:
        """Hands waiting consume queue units to the file system, one queue at each step; others may use the store in between.

        Says what to sync: files first, and then the directories that have new names. What earlier rounds named and did not
        finish is named again. Raises OSError, StoreUnwritable.
        """
        for unsynced in self._queues.write():
            self._refuse_if_given_up()
            self._unsynced.update(dict.fromkeys(unsynced.files))
            self._unsynced_directories.update(dict.fromkeys(unsynced.directories))
            yield unsynced

    def unsynced_queues(self) -> Unsynced:
        """All that `write_queues` named and no round has finished."""
        return Unsynced(list(self._unsynced), list(self._unsynced_directories))

    def write_index(self) -> Unsynced:
        """Hands waiting index entries to the file system; says what to sync. Raises OSError, StoreUnwritable."""
        self._refuse_if_given_up()
        return self._index.write()

    def finish_checkpoint(self, mark: DurableMark, queues: Unsynced) -> Callable[[], None] | None:
        """Call it after the syncs; `queues` is what was synced of the consume queues. Raises OSError.

        Returns what notes from where the next recovery has to begin, or None if there is nothing to note. It writes two files, on
        any thread, and raises OSError. A mark that a later one overtook tells nothing any more: a topic may have been deleted.
        """
        if mark is not self._latest_mark or self._is_given_up:
            return None
        for path in queues.files:
            self._unsynced.pop(path, None)
        for path in queues.directories:
            self._unsynced_directories.pop(path, None)
        index = self._index
        index.mark_synced()
        state = (mark.position, index.durable_offset, mark.max_offsets)
        if state == self._saved_state:
            return None
        index_state = index.durable_offset, index.durable_end_offset, index.durable_end_timestamp

        def save() -> None:
            self._durable.save(mark, *index_state)
            self._saved_state = state

        return save

    def next_offset(self, topic: bytes, queue_id: int) -> int:
        """The queue offset the next message gets; beyond `max_offset` while some are not visible yet."""
        return self._next_offsets.get((topic, queue_id), 0)

    def forget_topic(self, topic: bytes) -> list[Path]:
        """Forgets a topic's queues; its records expire with the commit log (cleanUnusedTopic).

        Says what to delete, in this order. Until all is deleted no checkpoint may begin, and until CHECKPOINT_ROUNDS have ended
        after that the next recovery may bring the queues back. Raises StoreUnwritable.
        """
        self._refuse_if_given_up()
        paths = self._queues.forget_topic(topic)
        for key in [key for key in self._next_offsets if key[0] == topic]:
            del self._next_offsets[key]
        # Messages on their way to the old queues must not come into the new ones.
        self._unpublished = [request for request in self._unpublished if request.topic != topic]
        return paths

    def delete_topic(self, topic: bytes) -> None:
        """`forget_topic`, the deletion and a checkpoint in one go. Blocks."""
        for path in self.forget_topic(topic):
            if self._files.is_directory(path):
                if not self._files.list(path):
                    self._files.remove_directory(path)
            elif self._files.size(path) is not None:
                self._files.unlink(path)
        with suppress(OSError):
            # The batch is left to `write`, whose caller hears of a failure.
            self._sync_all()

    def expire(self, now_ms: int, needed_from: int | None = None, *, at_any_hour: bool = False) -> Expired:
        """Forgets commit log segments that may go; call it every few seconds. Refuses or admits messages by how full the disk is.

        Nothing goes that lies behind `needed_from`. `trim` follows, and then the deletion of all files named. Raises OSError.
        """
        self._refuse_if_given_up()
        ratio = self.look_at_disk()
        removal = removable(self._log, self.config, now_ms, ratio, needed_from, at_any_hour=at_any_hour)
        return Expired(self._log.segments.forget_before(removal.end), removal.unexpired, removal.youngest_ms)

    def trim(self) -> Iterator[Trimmed]:
        """Forgets what consume queues and index hold of messages that the commit log has forgotten, one file or queue a step."""
        yield from self._queues.trim(self._log.min_offset)
        yield Trimmed(self._index.forget_before(self._log.min_offset), 0)

    def delete_expired(self, now_ms: int, needed_from: int | None = None) -> list[Path]:
        """`expire`, `trim` and the deletion in one go; answers what was deleted. Blocks. Raises OSError."""
        paths = self.expire(now_ms, needed_from).paths
        if paths:
            paths += [path for trimmed in self.trim() for path in trimmed.paths]
        for path in paths:
            self._files.unlink(path)
        return paths

    def look_at_disk(self) -> float:
        """Refuses or admits messages by how full the disk is, 0 to 1, and answers that. Raises OSError."""
        ratio = self.disk_used_ratio()
        self._writability.note_disk(ratio, self.config.disk_full_ratio)
        return ratio

    def disk_used_ratio(self) -> float:
        """How full the store's disk is, 0 to 1; the fuller one counts if the commit log has a disk of its own."""
        directories = filter(self._files.is_directory, (self.config.root, self.config.commit_log_directory))
        return max(map(self._files.used_ratio, directories), default=0.0)

    def _sync_all(self) -> None:
        position = self._log.written_position
        self._index.begin_rounds()
        self._log.segments.sync(self.flushed_position, position)
        self.mark_flushed(position)
        for _ in range(self.CHECKPOINT_ROUNDS):
            mark = self.begin_checkpoint()
            for _ in self.write_queues():
                pass
            queues = self.unsynced_queues()
            self._sync(queues)
            self._sync(self.write_index())
            if save := self.finish_checkpoint(mark, queues):
                save()

    def _sync(self, unsynced: Unsynced) -> None:
        for path in unsynced.files:
            if self._files.size(path) is not None:  # or else its topic was deleted, or it expired
                self._files.sync(self._open_files.get(path))
        for path in unsynced.directories:
            if self._files.is_directory(path):
                self._files.sync_directory(path)

    def _begin(self) -> None:
        self.flushed_position = self._log.written_position
        self._next_offsets = self._queues.max_offsets()
        self._last_store_timestamp = self.recovery.last_store_timestamp
        self.look_at_disk()

    def _refuse_if_given_up(self) -> None:
        if self._is_given_up:
            raise StoreUnwritable(self.refusal or "")

    def _check_size(self, body_length: int, properties_length: int, size: int, *, was_accepted: bool) -> None:
        if properties_length > MAX_PROPERTIES_LENGTH:
            raise IllegalMessage(f"the message properties have {properties_length} bytes; {MAX_PROPERTIES_LENGTH} are allowed")
        if not self._log.fits(size):
            raise IllegalMessage(f"a record of {size} bytes does not fit into a commit log segment")
        if not was_accepted:
            raise IllegalMessage(f"the message body has {body_length} bytes; {self.config.max_message_size} are allowed")

    def _take_unpublished(self, position: int) -> list[DispatchRequest]:
        waiting = self._unpublished
        if not waiting:
            return waiting
        last = waiting[-1]
        if last.commit_log_offset + last.size <= position:
            self._unpublished = []
            return waiting
        count = 0
        for request in waiting:
            if request.commit_log_offset + request.size > position:
                break
            count += 1
        self._unpublished = waiting[count:]
        return waiting[:count]

    def _forget_after(self, position: int) -> None:
        kept = []
        for request in reversed(self._unpublished):
            if request.commit_log_offset < position:
                kept.append(request)
            elif request.is_queued:
                self._next_offsets[(request.topic, request.queue_id)] = request.queue_offset
        self._unpublished = kept[::-1]


def _check_queue_name(topic: bytes, queue_id: int) -> None:
    topics.validate_topic(topic.decode(errors="replace"))
    if queue_id < 0:
        raise IllegalMessage(f"the queue id {queue_id} is negative")


def _reason(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "") + " " + (error.strerror or str(error))
