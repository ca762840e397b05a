"""A small table stored in a JSON file (RocketMQ's ConfigManager)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rocketmq_broker.store.errors import DamagedStore
from rocketmq_broker.store.files import FileSystem, OsFileSystem, read_file, replace_file
from rocketmq_broker.store.tables import fastjson

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The version of a table's state (RocketMQ's DataVersion)."""

    timestamp: int = 0
    """The time of the last change, in milliseconds since the epoch."""
    counter: int = 0
    others: tuple[tuple[str, Any], ...] = ()
    """Members that newer versions of RocketMQ write, such as `("stateVersion", 0)`. They are kept unchanged."""

    def next(self, now_ms: int) -> "TableVersion":
        """Returns the version after one more change."""
        return TableVersion(now_ms, self.counter + 1, self.others)

    def as_json(self) -> dict[str, Any]:
        """Returns the version as JSON for a config file."""
        return dict(sorted([("counter", self.counter), ("timestamp", self.timestamp), *self.others]))

    @classmethod
    def from_json(cls, value: Any) -> "TableVersion":
        """Parses the result of `as_json`. Missing members default to 0."""
        given = value if isinstance(value, dict) else {}
        others = tuple((name, member) for name, member in given.items() if name not in {"counter", "timestamp"})
        return cls(int(given.get("timestamp", 0)), int(given.get("counter", 0)), others)


class ConfigFile:
    """A JSON file, with its previous content in a `.bak` file.

    Unknown members, such as those of a newer RocketMQ, are kept.
    """

    def __init__(self, path: Path, files: FileSystem | None = None, *, members: frozenset[str] | None = None) -> None:
        """Creates a config file without reading it.

        `members` are the members that the caller reads and writes, or None if these are all members of the file.
        """
        self.others: dict[str, Any] = {}
        """The members of the file that the caller does not use. They are kept unchanged."""
        self.complaint: str | None = None
        """A warning if the file was unreadable and was replaced with its backup, or None."""
        self._path = path
        self._members = members
        self._backup = path.with_name(path.name + ".bak")
        self._files = files or OsFileSystem()
        self._written: tuple[dict[str, Any], int] | None = None

    def read(self, parse: Callable[[dict[str, Any]], T]) -> T:
        """Returns the file's content, as parsed by `parse`. Reads the backup if the file is missing or damaged.

        Returns `parse({})` if neither exists. Content counts as damaged if `parse` raises an error. Raises DamagedStore if a file
        exists but neither can be read.
        """
        self.complaint = None
        try:
            value = self._parsed(self._path, parse)
        except DamagedStore as damage:
            backup = self._parsed(self._backup, parse)
            if backup is None:
                raise
            self.complaint = f"{damage}; its backup was read"
            return backup
        if value is not None:
            return value
        backup = self._parsed(self._backup, parse)
        if backup is not None or self._files.size(self._path) is not None:
            found = "its backup was read" if backup is not None else "there is no backup"
            self.complaint = f"{self._path} is missing or empty: {found}"
        return parse({}) if backup is None else backup

    @property
    def is_missing(self) -> bool:
        """Returns whether the file is missing. Raises OSError."""
        return self._files.size(self._path) is None

    def write(self, value: dict[str, Any]) -> None:
        """Replaces the file with the new content, and the backup with the old content. The change is durable on return.

        Does not write unchanged content again, unless the file was removed or its length has changed. The caller must not modify
        `value` later. Raises OSError.
        """
        if self._written is not None and self._written == (value, self._files.size(self._path)):
            return  # Most tables are persisted every few seconds but rarely change.
        self._written = None
        content = fastjson.encode(dict(sorted({**self.others, **value}.items())))
        self.write_encoded(content)
        self._written = value, len(content)

    def write_encoded(self, content: bytes) -> None:
        """Replaces the file's content with encoded JSON, like `write`. Raises OSError."""
        before = read_file(self._files, self._path)
        if before == content:
            return
        self._files.make_directory(self._path.parent)
        replace_file(self._files, self._path, content, backup=self._backup if before else None)

    def _parsed(self, path: Path, parse: Callable[[dict[str, Any]], T]) -> T | None:
        content = read_file(self._files, path)
        if not content or not content.strip(b"\0 \r\n\t"):
            return None
        try:
            value = fastjson.decode(content)
            if not isinstance(value, dict):
                raise ValueError("not a JSON object")
            parsed = parse(value)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedStore(f"{path}: {error}") from None
        if self._members is not None:
            self.others = {name: member for name, member in value.items() if name not in self._members}
        return parsed
