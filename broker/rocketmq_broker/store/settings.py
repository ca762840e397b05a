"""The settings of a store (a part of RocketMQ's MessageStoreConfig)."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_DELAY_LEVELS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)


class FlushDiskType(Enum):
    """Defines when a message counts as stored: once it is on disk (SYNC_FLUSH), or once it is written (ASYNC_FLUSH)."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """The settings of a store. The defaults are RocketMQ's, except for `flush_disk_type` and `is_clean_forcible`."""

    root: Path
    """The root directory of the store (storePathRootDir)."""
    store_host: bytes
    """The broker's address, encoded with `rocketmq_broker.message.record.host_bytes`: 8 bytes for IPv4, 20 for IPv6."""
    commit_log_path: Path | None = None
    """The directory of the commit log (storePathCommitLog). The default is `commitlog` under the root."""
    commit_log_segment_size: int = 1 << 30
    """The size of a commit log segment in bytes (mapedFileSizeCommitLog). It must not change after the store is created."""
    consume_queue_units_per_file: int = 300_000
    """The number of units in a consume queue file, of 20 bytes each (mapedFileSizeConsumeQueue)."""
    index_slots: int = 5_000_000
    """The number of hash slots in an index file (maxHashSlotNum)."""
    index_entries: int = 20_000_000
    """The number of entries in an index file (maxIndexNum)."""
    is_index_enabled: bool = True
    """Whether messages are indexed by key (messageIndexEnable)."""
    flush_disk_type: FlushDiskType = FlushDiskType.SYNC_FLUSH
    file_reserved_hours: int = 72
    """The number of hours after which segments expire (fileReservedTime)."""
    delete_when: str = "04"
    """The hours of the day at which expired segments are deleted, in local time, separated by semicolons (deleteWhen)."""
    disk_max_used_ratio: float = 0.75
    """The used ratio of the disk above which expired segments are deleted at any hour (diskMaxUsedSpaceRatio)."""
    is_clean_forcible: bool = False
    """Whether segments may be deleted before they expire (cleanFileForciblyEnable). RocketMQ's default is true."""
    disk_clean_ratio: float = 0.85
    """The used ratio of the disk above which `is_clean_forcible` takes effect (diskSpaceCleanForciblyRatio)."""
    disk_full_ratio: float = 0.90
    """The used ratio of the disk above which new messages are refused (diskSpaceWarningLevelRatio, see `store.writability`)."""
    max_message_size: int = 4 << 20
    """The maximum size of a message body in bytes (maxMessageSize)."""
    delay_levels_ms: tuple[int, ...] = tuple(seconds * 1000 for seconds in _DELAY_LEVELS_S)
    """The delay of each level in milliseconds, from level 1 (messageDelayLevel)."""
    max_open_files: int = 256

    @property
    def commit_log_directory(self) -> Path:
        """Returns the folder of the commit log's segments."""
        return self.commit_log_path or self.root / "commitlog"

    @property
    def consume_queue_directory(self) -> Path:
        """Returns the folder of the consume queues, with a subfolder for each topic and queue."""
        return self.root / "consumequeue"

    @property
    def index_directory(self) -> Path:
        """Returns the folder of the index files."""
        return self.root / "index"

    @property
    def config_directory(self) -> Path:
        """Returns the folder of topics.json and the other config files."""
        return self.root / "config"
