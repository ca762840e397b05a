"""delayOffset.json: the delivered offset of each delay level's queue (RocketMQ's ScheduleMessageService)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_file import ConfigFile


class DelayOffsets:
    """The offset of each delay level, 1 being the first; changes reach the file with `persist`."""

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Begins empty; `load` reads the file."""
        self._table: dict[int, int] = {}
        self._file = ConfigFile(config_directory / "delayOffset.json", files, members=frozenset({"offsetTable"}))

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        self._table = self._file.read(_parse)

    @property
    def complaint(self) -> str | None:
        """Returns the problem of the loaded file, in words, or None."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        self._file.write({"offsetTable": dict(sorted(self._table.items()))})

    def get(self, level: int) -> int | None:
        """Returns the next offset to deliver, or None if delivery never began."""
        return self._table.get(level)

    def put(self, level: int, offset: int) -> None:
        """Sets the next offset to deliver."""
        self._table[level] = offset


def _parse(content: dict[str, Any]) -> dict[int, int]:
    return {int(level): int(offset) for level, offset in (content.get("offsetTable") or {}).items()}
