"""Checks a store on this machine's disk. Reports the process that uses it, and the damage that the next start will repair.

The check writes nothing to the disk and takes no lock, because all changes go to an overlay in memory (MemoryFiles).
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.output.durations import ago_text
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.platform.files import mode_for_others, open_regular
from rocketmq_broker.platform.locks import holder
from rocketmq_broker.store import (
    ConsumerOffsets,
    DamagedStore,
    DelayOffsets,
    FileSystem,
    MessageStore,
    RecoveryReport,
    StoreConfig,
    StoreError,
    SubscriptionGroups,
    TopicConfigs,
)
from rocketmq_broker.store.files import OsFileSystem
from rocketmq_broker.store.memory_files import MemoryFiles

_UNIT_SIZE: Final = 20
_NAME_LENGTH: Final = 20
_MAX_NAMED: Final = 20
_FULL_PERCENT: Final = 90
"""The default of diskSpaceWarningLevelRatio, in percent. The store does not contain the configured value."""
_BACKUP: Final = "Copy the store before starting the broker."


def examine_store(root: Path, now_ms: int) -> list[HealthFinding]:
    """Returns findings about the store in `root` (storePathRootDir)."""
    subject = f"store {root}"
    if not (root / "commitlog").is_dir():
        what_to_do = "Give the storePathRootDir of broker.conf: a folder that contains a folder commitlog."
        return [wrong(subject, "Store not found.", what_to_do)]
    try:
        return [*_disk(subject, root), *_tables(subject, root), *_log(subject, root, now_ms)]
    except OSError as error:
        return [wrong(subject, f"It cannot be read: {error}.", "Run this command as the broker's user.")]


def _log(subject: str, root: Path, now_ms: int) -> Iterator[HealthFinding]:
    user = user_of(root / "lock")
    if user is not None:
        yield fine(subject, f"A broker is using it ({user}): stop the broker to check the commit log.")
        return
    config = store_config(root)
    try:
        next_start = _opened(config, _disk_overlay())
        everything = _opened(config, _without_checkpoints(root))
    except (StoreError, OSError) as error:
        yield wrong(subject, f"A broker cannot start on it: {error}.", f"{_BACKUP} Check the file that the message names.")
        return
    yield _stopped(subject, next_start)
    yield _whole_log(subject, config, everything, now_ms)
    damaged = [*everything.damaged]
    if everything.end < next_start.end:
        damaged.append((everything.end, next_start.end - everything.end))
    yield from _damage(subject, damaged)
    known = {action for action in everything.actions if "damaged" in action}
    for action in next_start.actions:
        if action not in known and not action.startswith("the last broker did not stop"):
            yield fine(subject, f"The next start repairs: {action}.")


def _opened(config: StoreConfig, files: FileSystem) -> RecoveryReport:
    """Opens the store in memory and returns its recovery report. Skips the index, which can be rebuilt from the log."""
    for name in files.list(config.index_directory):
        files.unlink(config.index_directory / name)
    return MessageStore.open(config, files).recovery


def _disk_overlay() -> MemoryFiles:
    return MemoryFiles(OsFileSystem())


def _without_checkpoints(root: Path) -> MemoryFiles:
    """Returns the store's files without the checkpoints, so that opening the store reads the whole commit log."""
    files = _disk_overlay()
    for name in ("checkpoint", "progress.json"):
        if files.size(root / name) is not None:
            files.unlink(root / name)
    files.close(files.open(root / "abort", create=True))
    return files


def _stopped(subject: str, report: RecoveryReport) -> HealthFinding:
    if report.was_stopped_cleanly:
        return fine(subject, "The last broker stopped cleanly.")
    return fine(
        subject, "The last broker did not stop cleanly: it was killed, or the machine failed. The next start recovers the store."
    )


def _whole_log(subject: str, config: StoreConfig, report: RecoveryReport, now_ms: int) -> HealthFinding:
    segments = len(_segments(config.commit_log_directory))
    latest = report.last_store_timestamp
    age = f", the last one {ago_text(latest, now_ms)}" if report.records_scanned and latest else ""
    what = f"Its commit log has {report.records_scanned} intact records up to offset {report.end}, in {segments} files{age}."
    return fine(subject, what)


def _damage(subject: str, damaged: Sequence[tuple[int, int]]) -> Iterator[HealthFinding]:
    for offset, length in damaged[:_MAX_NAMED]:
        what = f"{length} bytes of the commit log at offset {offset} are damaged: the messages in them are lost."
        yield wrong(subject, what, f"The broker skips them. {_BACKUP} Check the disk: rocketmq-admin cannot repair it.")
    if len(damaged) > _MAX_NAMED:
        yield wrong(subject, f"{len(damaged) - _MAX_NAMED} more ranges are damaged.", _BACKUP)


def _tables(subject: str, root: Path) -> Iterator[HealthFinding]:
    directory, files = root / "config", _disk_overlay()
    for table in (
        TopicConfigs(directory, files),
        SubscriptionGroups(directory, files),
        ConsumerOffsets(directory, files),
        DelayOffsets(directory, files),
    ):
        try:
            table.load()
        except DamagedStore as error:
            what_to_do = "Restore a copy of the file, or move it and its .bak away: the broker then creates a new one."
            yield wrong(subject, f"A broker cannot start on it: {error}.", what_to_do)
        else:
            if table.complaint is not None:
                yield wrong(subject, f"{table.complaint}.", "The broker continues with it; check the disk.")


def _disk(subject: str, root: Path) -> Iterator[HealthFinding]:
    percent = OsFileSystem().used_ratio(root) * 100
    if percent < _FULL_PERCENT:
        yield fine(subject, f"Its disk is {percent:.0f} % full; above {_FULL_PERCENT} % a broker refuses messages.")
    else:
        yield wrong(subject, f"Its disk is {percent:.0f} % full: a broker refuses new messages.", "Free space on it.")
    mode = mode_for_others(root)
    if mode is not None:
        yield wrong(subject, f"Other users of this machine can read it (mode {mode:o}).", f"chmod 700 {root}")


def user_of(lock: Path) -> str | None:
    """Returns the process that holds the lock on the file; None if it is not locked. Takes no lock."""
    try:
        file = open_regular(lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return holder(file)
    finally:
        os.close(file)


def store_config(root: Path) -> StoreConfig:
    """Returns settings derived from the store's files. All other settings have RocketMQ's defaults."""
    usual = StoreConfig(root=root, store_host=host_bytes("127.0.0.1", 0))
    queues = next((folder for folder in sorted(root.glob("consumequeue/*/*")) if _segments(folder)), None)
    return StoreConfig(
        root=root,
        store_host=usual.store_host,
        commit_log_segment_size=_file_size(root / "commitlog") or usual.commit_log_segment_size,
        consume_queue_units_per_file=(_file_size(queues) if queues else 0) // _UNIT_SIZE or usual.consume_queue_units_per_file,
        is_index_enabled=False,
    )


def _file_size(folder: Path) -> int:
    """Returns the size of a file in the folder, where all files have the same size; 0 if there is no file.

    The size is the difference between the offsets in two file names, or the size of the only file.
    """
    starts = _segments(folder)
    if len(starts) > 1:
        return starts[1] - starts[0]
    return (folder / f"{starts[0]:0{_NAME_LENGTH}d}").stat().st_size if starts else 0


def _segments(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if len(path.name) == _NAME_LENGTH and path.name.isdecimal())
