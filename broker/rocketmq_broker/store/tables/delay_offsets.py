"""delayOffset.json: how far each delay level's queue was delivered (RocketMQ's ScheduleMessageService)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_file import ConfigFile


class DelayOffsets:
    """The offset of each delay level, 1 being the first; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Empty until `load`."""
        self._table: dict[int, int] = {}
        self._file = ConfigFile(config_directory / "delayOffset.json", files, members=frozenset({"offsetTable"}))

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        self._table = self._file.read(_parse)

    @property
    def complaint(self) -> str | None:
        """What was wrong with the file when it was loaded, in words."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        self._file.write({"offsetTable": dict(sorted(self._table.items()))})

    def get(self, level: int) -> int | None:
        """Where delivery goes on, or None if it never began."""
        return self._table.get(level)

    def put(self, level: int, offset: int) -> None:
        """Delivery of the level goes on at this queue offset."""
        self._table[level] = offset


def _parse(content: dict[str, Any]) -> dict[int, int]:
    return {int(level): int(offset) for level, offset in (content.get("offsetTable") or {}).items()}
