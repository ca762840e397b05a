"""The results that the store returns."""

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple


class Appended:
    """The position of an appended message in the store. The message can be read there once it is written.

    It is a plain class, because each message creates instances: those of a named tuple take ten times as many instructions.
    """

    __slots__ = ("commit_log_offset", "end_position", "queue_offset")

    def __init__(self, commit_log_offset: int, queue_offset: int, end_position: int) -> None:
        """`end_position` is the commit log offset after the record. The record is durable once the log is flushed up to it."""
        self.commit_log_offset = commit_log_offset
        self.queue_offset = queue_offset
        self.end_position = end_position


class GetMessageStatus(IntEnum):
    """The result of a pull, with the numbers of RocketMQ's GetMessageStatus."""

    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8


@dataclass(frozen=True, slots=True)
class PulledMessages:
    """The pulled records, oldest first, and the offset of the next pull."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    records: list[bytes] = field(default_factory=list)
    cost_ns: int = 0
    """The estimated time that the filter took, in nanoseconds."""


class QueriedMessages(NamedTuple):
    """Records found by key, oldest first, and the time and offset of the end of the index (QueryMessageResult)."""

    records: list[bytes]
    index_last_update_timestamp: int
    index_last_update_offset: int
    are_all: bool
    """Whether these are all messages with the key. False if the limit on messages or bytes may have excluded some."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Commit log segments that the store no longer uses."""

    paths: list[Path] = field(default_factory=list)
    """The files to delete, in deletion order. If a file cannot be deleted, the files after it must stay."""
    unexpired: int = 0
    """The number of segments that were dropped before they expired (cleanFileForciblyEnable)."""
    youngest_ms: int = 0
    """The time at which the youngest of these unexpired segments was completed, in milliseconds since the epoch."""


class Trimmed(NamedTuple):
    """The part of a consume queue that was dropped together with the first segments of the commit log."""

    paths: list[Path]
    """The files to delete."""
    messages: int
