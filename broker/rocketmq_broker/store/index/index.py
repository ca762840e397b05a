"""The index, which finds messages by their KEYS and UNIQ_KEY in index files (RocketMQ's IndexService).

The index can be rebuilt from the commit log, so it need not survive a crash. New messages wait in memory until one write can
store many of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from rocketmq_broker.message import properties as message_properties
from rocketmq_broker.message.tags import java_hash_code
from rocketmq_broker.store.files import OpenFiles
from rocketmq_broker.store.index.index_file import IndexFile, IndexHeader
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.store.queues.unit_files import Unsynced
from rocketmq_broker.store.settings import StoreConfig

if TYPE_CHECKING:
    from mypy_extensions import i64

_WAITING_LIMIT: Final = 512
_APPLIED_AT_ONCE: Final = 2048
"""The number of entries, or of messages without keys, after which one step of adding waiting records ends.

A step may add a few more entries, because it adds all keys of its last message.
"""
_BEHIND: Final = 4096
_MASK: Final = 0xFFFFFFFF
_MAX_INT: Final = 0x7FFFFFFF
MAX_FOUND: Final = 64
_NAME_LENGTH: Final = 17
_CHANGING_LENGTH: Final = 8
"""The number of characters at the end of a key that usually differ between two keys of one client.

A unique id ends with half of a timestamp and a counter.
"""
_MAX_REMEMBERED_LENGTH: Final = 512
_MAX_REMEMBERED: Final = 512
"""The maximum number of entries in each cache of hash codes.

Strings longer than `_MAX_REMEMBERED_LENGTH` bytes are not cached. Both limits are needed because clients choose the strings.
"""
_LAST_MS: Final = 32_503_593_600_000
"""A time on the last day of the year 2999, in milliseconds since the epoch. Windows formats no later years."""
_PAIR_END: Final = b"\x02"
_UNIQUE_KEY: Final = message_properties.beginning(message_properties.UNIQUE_KEY)
_KEYS: Final = message_properties.beginning(message_properties.KEYS)
_UNIQUE_KEY_AMONG_OTHERS: Final = _PAIR_END + _UNIQUE_KEY
_KEYS_AMONG_OTHERS: Final = _PAIR_END + _KEYS
_KEY_SEPARATOR: Final = message_properties.KEY_SEPARATOR.encode()
_remembered_hashes: Final[dict[bytes, list[tuple[int, int]]]] = {}
_hashes_of_beginnings: Final[dict[bytes, int]] = {}
_topic_hashes: Final[dict[bytes, int]] = {}


class Index:
    """The index files, oldest first, and the records that will be added to them."""

    STAGES: ClassVar[int] = 3
    """The number of rounds after which all earlier entries are on disk. A round is `write`, a sync and `mark_synced`."""

    def __init__(self, config: StoreConfig, open_files: OpenFiles) -> None:
        """Creates an empty index. Call `load` to read the files."""
        self._config = config
        self._open = open_files
        self._index_files: list[IndexFile] = []
        self._waiting: list[DispatchRequest] = []
        self._is_frozen = False
        self._is_refused = False
        self._is_distrusted = False
        self.end_timestamp = 0
        self.end_offset = -1
        """The commit log offset of the last examined record, or -1 if there is none."""
        self.durable_offset = -1
        """The commit log offset of the last examined record whose entries, if it has any, are on disk."""
        self._examining = -1
        self._examined: list[int] = []

    def load(self) -> None:
        """Loads the files. If a file is damaged or has different settings, deletes all files, so that the index is rebuilt."""
        directory = self._config.index_directory
        for name in self._open.files.list(directory):
            if len(name) != _NAME_LENGTH or not name.isdigit():
                continue
            index_file = IndexFile(directory / name, self._config.index_slots, self._config.index_entries, self._open)
            self._index_files.append(index_file)
        while len(self._index_files) > 1 and self._index_files[-1].is_empty:
            # After a crash, the newest file may exist although entries of the file before it are lost.
            self._index_files.pop().delete()
        if not all(each.is_usable() for each in self._index_files) or not all(each.is_full for each in self._index_files[:-1]):
            self.clear()
        if not self.is_empty:
            # The end offset of a file without entries is 0, which would exclude the record at commit log offset 0.
            header = self._index_files[-1].header
            self.end_timestamp, self.end_offset = header.end_timestamp, header.end_offset

    def repair(self) -> int:
        """Makes the last file consistent after a crash. Returns the number of corrected slots."""
        return self._index_files[-1].repair() if self._index_files else 0

    def clear(self) -> None:
        """Deletes all files, so that the index is rebuilt."""
        for index_file in self._index_files:
            index_file.delete()
        self._index_files = []
        self.end_timestamp, self.end_offset = 0, -1

    @property
    def is_empty(self) -> bool:
        """Returns whether the index has no entries."""
        return not self._index_files or (len(self._index_files) == 1 and self._index_files[0].is_empty)

    def continue_after(self, commit_log_offset: int) -> None:
        """Makes the index add all records after this offset, even if it has entries of lost records at later offsets."""
        self.end_offset = commit_log_offset

    @property
    def durable_end_offset(self) -> int:
        """Returns the commit log offset of the last record whose entries are on disk, or -1 if there is none."""
        return self._durable_header.end_offset if self._index_files else -1

    @property
    def durable_end_timestamp(self) -> int:
        """Returns the store timestamp of the last record whose entries are on disk, or 0 if there is none."""
        return self._durable_header.end_timestamp if self._index_files else 0

    def add(self, requests: Sequence[DispatchRequest]) -> None:
        """Adds new records, in the order of the commit log. Ignores records that are already in the index."""
        if not self._config.is_index_enabled:
            return
        if self._waiting and requests and requests[0].commit_log_offset <= self._waiting[-1].commit_log_offset:
            # Recovery reads the log again from an earlier position.
            last = self._waiting[-1].commit_log_offset
            requests = [request for request in requests if request.commit_log_offset > last]
        self._waiting.extend(requests)
        if len(self._waiting) >= _WAITING_LIMIT:
            self.feed()

    @property
    def is_behind(self) -> bool:
        """Returns whether too many records are waiting and the disk accepts writes."""
        return len(self._waiting) >= _BEHIND and not self._is_frozen and not self._is_refused

    def feed(self) -> None:
        """Adds some of the waiting records to the index file.

        If the disk is full, the records stay in memory. Their number is bounded, because the log cannot grow either.
        """
        if self._is_frozen:
            return
        self._is_refused = True
        with suppress(OSError):
            self._apply()
            self._is_refused = False

    def find(self, topic: bytes, key: str, max_messages: int, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Yields the commit log offsets of messages that may have this key, newest first.

        Only messages stored from `begin_ms` to `end_ms` are found.

        Hashes may collide, so the caller must compare the keys. Also yields None from time to time during a long search, so that
        the caller can do other work.
        """
        left = min(max_messages, MAX_FOUND)
        wanted = key.encode()
        for request in self._waiting[::-1]:
            if request.is_indexed and request.topic == topic and begin_ms <= request.store_timestamp <= end_ms:
                is_found = wanted in _keys(request.properties)
                yield request.commit_log_offset if is_found else None
                left -= is_found
                if not left:
                    return
        key_hash = _key_hash(topic, wanted)
        for index_file in self._index_files[::-1]:
            if index_file.may_hold(begin_ms, end_ms):
                for offset in index_file.find(key_hash, begin_ms, end_ms):
                    yield offset
                    left -= offset is not None
                    if not left:
                        return

    def begin_rounds(self) -> None:
        """Cancels a round of writes that was interrupted between `write` and `mark_synced`.

        Adds all waiting records to the index files. Raises OSError.
        """
        self._is_frozen = False
        while self._waiting:
            self._apply()

    def write(self) -> Unsynced:
        """Writes waiting entries to the files. Returns the files and directories to sync before `mark_synced`. Raises OSError."""
        if not self._is_frozen:
            self._apply()
        self._is_frozen = True
        self._examining = self.end_offset
        written = [index_file.path for index_file in self._index_files if index_file.write()]
        directory = self._config.index_directory
        is_name_new = any(index_file.is_new for index_file in self._index_files)
        return Unsynced(written, [directory, directory.parent] if is_name_new else [])

    def mark_synced(self) -> None:
        """Records that the files from `write` are on disk. Raises OSError."""
        if self._is_distrusted:
            self._is_frozen = False
            return
        for index_file in self._index_files:
            if not index_file.is_settled:
                index_file.mark_synced()
                index_file.is_new = False
                if index_file.is_settled and index_file is not self._index_files[-1]:
                    index_file.release_memory()
        self._is_frozen = False
        # All entries of a record are on disk `STAGES` rounds after the round that examined it.
        self._examined = [*self._examined, self._examining][-self.STAGES :]
        if len(self._examined) == self.STAGES:
            self.durable_offset = self._examined[0]

    def distrust(self) -> None:
        """Stops writing the headers of index files until the next start, because a sync has failed and entries may be lost."""
        self._is_distrusted = True

    def forget_before(self, commit_log_offset: int) -> list[Path]:
        """Drops the files whose records have expired, except the last file. Returns the files to delete."""
        forgotten = []
        while len(self._index_files) > 1 and self._index_files[0].header.end_offset < commit_log_offset:
            index_file = self._index_files.pop(0)
            self._open.forget(index_file.path)
            forgotten.append(index_file.path)
        return forgotten

    @property
    def _durable_header(self) -> IndexHeader:
        """Returns the durable header of the last file with durable entries. Ignores the files after an incomplete file."""
        durable = self._index_files[0].synced_header
        for index_file in self._index_files:
            if index_file.synced_header.entry_count > 1:
                durable = index_file.synced_header
            if not index_file.is_settled:
                break
        return durable

    def _apply(self) -> None:
        """Adds the oldest waiting records to the index file, in one step of a few milliseconds."""
        hashes: list[int] = []
        records: list[DispatchRequest] = []
        examined = 0
        for request in islice(self._waiting, _APPLIED_AT_ONCE):
            examined += 1
            if request.is_indexed and request.commit_log_offset > self.end_offset:
                _add_hashes(hashes, request)
                records += [request] * (len(hashes) - len(records))
            if len(hashes) >= _APPLIED_AT_ONCE:
                break
        put = 0
        while put < len(hashes):
            put += self._writable(records[put].store_timestamp).put(hashes, records, put)
            # Counts a record only when all its entries are added, because they may be split between two files.
            self.end_offset = records[put].commit_log_offset - 1 if put < len(hashes) else records[-1].commit_log_offset
        if examined:
            last = self._waiting[examined - 1]
            self.end_offset = max(self.end_offset, last.commit_log_offset)
            self.end_timestamp = last.store_timestamp
            del self._waiting[:examined]

    def _writable(self, store_timestamp: int) -> IndexFile:
        last = self._index_files[-1] if self._index_files else None
        if last is not None and not last.is_full:
            return last
        name = _file_name(store_timestamp)
        if last is not None and name <= last.path.name:
            name = f"{int(last.path.name) + 1:0{_NAME_LENGTH}d}"
        path = self._config.index_directory / name
        before = last.header if last is not None else None
        created = IndexFile.create(path, self._config.index_slots, self._config.index_entries, self._open, before)
        self._index_files.append(created)
        return created


def _add_hashes(hashes: list[int], request: DispatchRequest) -> None:
    """Adds the absolute hash codes of the record's keys, in RocketMQ's order.

    It is called for every stored message and must be fast.
    """
    properties = request.properties
    partial_hashes = _remembered_hashes.get(properties)
    if partial_hashes is None:
        partial_hashes = [_partial_hash(key) for key in _keys(properties)]
        # Some records have the same properties: a half message and its committed message, and all op messages.
        if len(properties) <= _MAX_REMEMBERED_LENGTH:
            if len(_remembered_hashes) >= _MAX_REMEMBERED:
                _remembered_hashes.clear()
            _remembered_hashes[properties] = partial_hashes
    if partial_hashes:
        topic_hash: i64 = _topic_hash(request.topic)
        for key_hash, factor in partial_hashes:
            hashes.append(_absolute_hash(topic_hash, factor, key_hash))


def _keys(properties: bytes) -> list[bytes]:
    """Returns the unique id and the keys, in RocketMQ's order."""
    unique_key = _value(properties, _UNIQUE_KEY, _UNIQUE_KEY_AMONG_OTHERS)
    keys = _value(properties, _KEYS, _KEYS_AMONG_OTHERS)
    found = [key for key in keys.split(_KEY_SEPARATOR) if key] if keys else []
    return [unique_key, *found] if unique_key else found


def _value(properties: bytes, name: bytes, name_among_others: bytes) -> bytes:
    """Returns the encoded value of a property. Does not decode it, because the function is called for every stored message."""
    rest = properties[len(name) :] if properties.startswith(name) else properties.partition(name_among_others)[2]
    return rest.partition(_PAIR_END)[0]


def _key_hash(topic: bytes, key: bytes) -> int:
    """Computes the absolute hash code of topic#key (IndexFile.indexKeyHashMethod)."""
    key_hash, factor = _partial_hash(key)
    return _absolute_hash(_topic_hash(topic), factor, key_hash)


def _absolute_hash(topic_hash: i64, factor: i64, key_hash: i64) -> i64:
    """Returns the absolute value of a hash code's last 32 bits, or 0 for Integer.MIN_VALUE, as in RocketMQ (Java's Math.abs).

    All numbers are signed 32-bit numbers, so that a compiled build can multiply them without an overflow.
    """
    code = (topic_hash * factor + key_hash) & _MASK
    return code if code <= _MAX_INT else -code & _MAX_INT


def _signed(code: int) -> int:
    """Returns the last 32 bits as a signed number."""
    return (code & _MASK) - ((code & _MAX_INT + 1) << 1)


_FACTORS: Final = [_signed(pow(31, length, _MASK + 1)) for length in range(_MAX_REMEMBERED_LENGTH)]
"""The powers of 31, by key length. The hash code of the string before a key is multiplied by the power for the key's length."""


def _topic_hash(topic: bytes) -> int:
    code = _topic_hashes.get(topic)
    if code is None:
        if len(_topic_hashes) >= _MAX_REMEMBERED:
            _topic_hashes.clear()
        code = _topic_hashes[topic] = java_hash_code(topic.decode(errors="replace") + "#")
    return code


def _partial_hash(key: bytes) -> tuple[int, int]:
    """Returns the hash code of the key, and the factor for the hash code of the string before the key."""
    length = len(key)
    if length >= len(_FACTORS) or not key.isascii():
        text = key.decode(errors="replace")
        return java_hash_code(text), _signed(pow(31, len(text.encode("utf-16-be", "surrogatepass")) // 2, _MASK + 1))
    if length <= _CHANGING_LENGTH:
        return _continue_hash(0, key), _FACTORS[length]
    return _continue_hash(_hash_of_beginning(key[:-_CHANGING_LENGTH]), key[-_CHANGING_LENGTH:]), _FACTORS[length]


def _hash_of_beginning(beginning: bytes) -> int:
    """Returns the hash code of a key's beginning.

    The result is cached, because most keys of a client differ only in their last characters.
    """
    code = _hashes_of_beginnings.get(beginning)
    if code is None:
        if len(_hashes_of_beginnings) >= _MAX_REMEMBERED:
            _hashes_of_beginnings.clear()
        code = _hashes_of_beginnings[beginning] = _continue_hash(0, beginning)
    return code


def _continue_hash(before: int, text: bytes) -> int:
    """Appends the ASCII string `text` to a string with the hash code `before`. Returns the hash code of the result."""
    code: i64 = before
    for byte in text:
        code = (code * 31 + byte) & _MASK
    return code


def _file_name(timestamp_ms: int) -> str:
    """Formats a time as yyyyMMddHHmmssSSS, in local time (UtilAll.timeMillisToHumanString)."""
    timestamp_ms = min(max(timestamp_ms, 0), _LAST_MS)  # a damaged record may have any time
    return time.strftime("%Y%m%d%H%M%S", time.localtime(timestamp_ms // 1000)) + f"{timestamp_ms % 1000:03d}"
