"""A table of settings by name, kept in a config file with its data version (RocketMQ's ConfigManager)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from broker.store import fastjson
from broker.store.config_file import ConfigFile, DataVersion


class Config(Protocol):
    """The settings of one thing."""

    def as_json(self) -> dict[str, Any]:
        """The settings as the file holds them."""


C = TypeVar("C", bound=Config)


class ConfigTable(Generic[C]):
    """Settings by name; changes reach the file with `persist`."""

    def __init__(
        self, file: ConfigFile, member: str, *, name_of: Callable[[C], str], from_json: Callable[[str, dict[str, Any]], C]
    ) -> None:
        """Empty until `load`. `member` is what the table is called in the file."""
        self.data_version = DataVersion()
        self._table: dict[str, C] = {}
        self._encoded: dict[str, str] = {}
        """As the file holds them: a change of one must not cost as much as all of them."""
        self._file = file
        self._member = member
        self._name_of = name_of
        self._from_json = from_json

    def load(self) -> None:
        """Reads the file if there is one. Raises DamagedStore."""
        self._table, self.data_version = self._file.read(self._parse)
        # Now, and not when the first change is waited for.
        self._encoded = {name: self._encode(name) for name in self._table}

    @property
    def complaint(self) -> str | None:
        """What was wrong with the file when it was loaded, in words."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file; durable when it returns. Raises OSError."""
        encoded = self._encoded
        for name in self._table.keys() - encoded.keys():
            encoded[name] = self._encode(name)
        table = fastjson.encode_object([encoded[name] for name in self._table], depth=1)
        version = fastjson.encode_member("dataVersion", self.data_version.as_json(), depth=0)
        content = fastjson.encode_object([version, f'\n\t"{self._member}":{table}'], depth=0)
        self._file.write_encoded(content.encode())

    def get(self, name: str) -> C | None:
        """The settings of that name, or None if there are none."""
        return self._table.get(name)

    def put(self, config: C, now_ms: int) -> None:
        """Adds or replaces settings."""
        name = self._name_of(config)
        self._table[name] = config
        self._encoded.pop(name, None)
        self.data_version = self.data_version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Removes settings; whether there were any."""
        if self._table.pop(name, None) is None:
            return False
        self._encoded.pop(name, None)
        self.data_version = self.data_version.next(now_ms)
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._table.values()))

    def __len__(self) -> int:
        return len(self._table)

    def _encode(self, name: str) -> str:
        return fastjson.encode_member(name, self._table[name].as_json(), depth=1)

    def _parse(self, content: dict[str, Any]) -> tuple[dict[str, C], DataVersion]:
        table = content.get(self._member) or {}
        configs = {name: self._from_json(name, value) for name, value in table.items()}
        return configs, DataVersion.from_json(content.get("dataVersion"))
