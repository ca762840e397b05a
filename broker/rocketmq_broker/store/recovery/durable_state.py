"""The small files at the root of a store: the abort file, the checkpoint, and the progress of dispatching.

    checkpoint (RocketMQ's StoreCheckpoint), 4096 bytes:
    PHYSICMSGTIMESTAMP 8 | LOGICSMSGTIMESTAMP 8 | INDEXMSGTIMESTAMP 8 | zeros

The timestamps are the store timestamps of the last durable records in the commit log, the consume queues and the index.
`abort` exists while a broker runs, and after a crash.

RocketMQ has no `progress.json`. The file contains
- the commit log offset before which everything is dispatched and on disk, so that recovery need not read whole segments,
- the length of each queue, so that the loss of a queue is detected,
- the time of the broker's ExpiryClock, which does not follow a wrong system clock.

Checkpoint and progress are written after the sync of their data. It is therefore safe if a crash leaves older versions of these
files.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rocketmq_broker.store.files import FileSystem, create_file, read_file

_CHECKPOINT = struct.Struct(">qqq")
_CHECKPOINT_SIZE = 4096
_CHECKPOINT_SLACK_MS = 3000


@dataclass(frozen=True, slots=True)
class DurableMark:
    """A state of the store that is durable once all earlier writes are synced."""

    position: int
    """The commit log offset before which every record is dispatched to its consume queue and the index."""
    store_timestamp: int
    max_offsets: dict[tuple[bytes, int], int]
    believed_ms: int | None = None
    """The time of the broker's ExpiryClock, in milliseconds since the epoch, or None if unknown."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of the checkpoint file, which has three timestamps in milliseconds since the epoch."""

    commit_log: int = 0
    consume_queues: int = 0
    index: int = 0

    @property
    def recover_from(self) -> int:
        """Returns the store timestamp before which records need no recovery (StoreCheckpoint.getMinTimestamp)."""
        return max(min(self.commit_log, self.consume_queues) - _CHECKPOINT_SLACK_MS, 0)


class Progress(msgspec.Struct, frozen=True):
    """The content of progress.json."""

    position: int
    """The commit log offset before which every record is in the commit log and the consume queues."""
    index_offset: int
    """The commit log offset of the last record up to which the index is complete."""
    index_end_offset: int
    """The ENDPHYOFFSET of the last index file when the progress was saved."""
    queues: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    """The max offset of each queue, keyed by topic and queue id."""
    believed_ms: int | None = None
    """The time of the broker's ExpiryClock when the progress was saved, in milliseconds since the epoch, or None.

    After a jump of the system clock, it may differ from the store timestamps of messages.
    """

    def max_offset(self, topic: bytes, queue_id: int) -> int | None:
        """Returns the max offset of a queue, or None if the queue did not exist."""
        return self.queues.get(topic.decode(), {}).get(queue_id)


@dataclass(frozen=True, slots=True)
class DurableState:
    """The files at a store's root that recovery reads at the next start."""

    root: Path
    files: FileSystem

    @property
    def was_stopped_cleanly(self) -> bool:
        """Returns whether the last broker stopped cleanly, with everything on disk. Call it before `mark_running`."""
        return self.files.size(self._abort) is None

    def mark_running(self) -> None:
        """Marks the store as crashed until `mark_stopped` is called. The change is durable on return."""
        if self.files.size(self._abort) is None:
            create_file(self.files, self._abort, 0)

    def mark_stopped(self) -> None:
        """Marks the store as cleanly stopped, so that the next start needs no recovery. The change is durable on return."""
        self.files.unlink(self._abort)
        self.files.sync_directory(self.root)

    def checkpoint(self) -> Checkpoint:
        """Returns the checkpoint. Its timestamps are 0 if the file does not exist."""
        content = read_file(self.files, self.root / "checkpoint") or b""
        return Checkpoint(*_CHECKPOINT.unpack_from(content)) if len(content) >= _CHECKPOINT.size else Checkpoint()

    def progress(self) -> Progress | None:
        """Returns the progress of dispatching, or None if it was never written or cannot be read."""
        try:
            return msgspec.json.decode(read_file(self.files, self.root / "progress.json") or b"", type=Progress)
        except (ValueError, RecursionError):
            return None

    def save(self, mark: DurableMark, index_offset: int, index_end_offset: int, index_end_timestamp: int) -> None:
        """Writes checkpoint and progress. Call it after the sync of their data."""
        self._save_checkpoint(Checkpoint(mark.store_timestamp, mark.store_timestamp, index_end_timestamp))
        queues: dict[str, dict[int, int]] = {}
        for (topic, queue_id), max_offset in mark.max_offsets.items():
            queues.setdefault(topic.decode(), {})[queue_id] = max_offset
        self._save_progress(Progress(mark.position, index_offset, index_end_offset, queues, mark.believed_ms))

    @property
    def _abort(self) -> Path:
        return self.root / "abort"

    def _save_checkpoint(self, checkpoint: Checkpoint) -> None:
        path = self.root / "checkpoint"
        if self.files.size(path) != _CHECKPOINT_SIZE:
            create_file(self.files, path, _CHECKPOINT_SIZE)
        file = self.files.open(path)
        try:
            self.files.write(file, _CHECKPOINT.pack(checkpoint.commit_log, checkpoint.consume_queues, checkpoint.index), 0)
        finally:
            self.files.close(file)

    def _save_progress(self, progress: Progress) -> None:
        # No sync is needed, because with a torn or old file recovery only reads more.
        path = self.root / "progress.json"
        part = path.with_name("progress.json.tmp")
        file = self.files.open(part, create=True)
        try:
            self.files.truncate(file, 0)
            self.files.write(file, msgspec.json.encode(progress), 0)
        finally:
            self.files.close(file)
        self.files.rename(part, path)
