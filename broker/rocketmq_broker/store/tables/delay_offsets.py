"""The offset of the next message to deliver in each delay level, in delayOffset.json (ScheduleMessageService)."""

from pathlib import Path
from typing import Any

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables.config_file import ConfigFile


class DelayOffsets:
    """The offset of the next message to deliver in each delay level. The first level is 1.

    `persist` writes changes to the file.
    """

    def __init__(self, config_directory: Path, files: FileSystem | None = None) -> None:
        """Creates an empty table. Call `load` to read the file."""
        self._table: dict[int, int] = {}
        self._file = ConfigFile(config_directory / "delayOffset.json", files, members=frozenset({"offsetTable"}))

    def load(self) -> None:
        """Reads the file if it exists. Raises DamagedStore."""
        self._table = self._file.read(_parse)

    @property
    def complaint(self) -> str | None:
        """Returns a warning about the loaded file, or None if there is none."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file durably. Raises OSError."""
        self._file.write({"offsetTable": dict(sorted(self._table.items()))})

    def get(self, level: int) -> int | None:
        """Returns the offset of the level's next message to deliver, or None if the level has no offset yet."""
        return self._table.get(level)

    def put(self, level: int, offset: int) -> None:
        """Sets the offset of the level's next message to deliver."""
        self._table[level] = offset


def _parse(content: dict[str, Any]) -> dict[int, int]:
    return {int(level): int(offset) for level, offset in (content.get("offsetTable") or {}).items()}
