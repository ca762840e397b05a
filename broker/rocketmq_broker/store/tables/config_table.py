"""A table of named settings, stored in a config file with its data version (RocketMQ's ConfigManager)."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.store.tables import fastjson
from rocketmq_broker.store.tables.config_file import ConfigFile, TableVersion

C = TypeVar("C", bound=msgspec.Struct)

_DATA_VERSION: Final = "dataVersion"


class ConfigTable(Generic[C]):
    """A table of named settings. `persist` writes changes to the file.

    Unknown members of the file, such as settings of a newer RocketMQ, are kept.
    """

    def __init__(
        self,
        path: Path,
        member: str,
        files: FileSystem | None,
        *,
        name_of: Callable[[C], str],
        from_json: Callable[[str, dict[str, Any]], C],
    ) -> None:
        """Creates an empty table. Call `load` to read the file. `member` is the table's name in the file."""
        self.data_version = TableVersion()
        self._table: dict[str, C] = {}
        self._texts: dict[str, tuple[C, str]] = {}
        self._others: dict[str, Mapping[str, Any]] = {}
        self._file = ConfigFile(path, files, members=frozenset({_DATA_VERSION, member}))
        self._member = member
        self._name_of = name_of
        self._from_json = from_json

    def load(self) -> None:
        """Reads the file if it exists. Raises DamagedStore."""
        self._table, self.data_version = self._file.read(self._parse)
        for name, config in self._table.items():
            self._encoded(name, config)

    @property
    def complaint(self) -> str | None:
        """Returns a warning about the loaded file, or None if there is none."""
        return self._file.complaint

    def persist(self) -> None:
        """Writes the file durably. Raises OSError."""
        members = [self._encoded(name, config) for name, config in self._table.items()]
        texts = {name: fastjson.member(name, value, 0) for name, value in self._file.others.items()}
        texts[_DATA_VERSION] = fastjson.member(_DATA_VERSION, self.data_version.as_json(), 0)
        texts[self._member] = f"\n\t{fastjson.encode(self._member).decode()}:{fastjson.joined(members, 1)}"
        self._file.write_encoded(fastjson.joined([texts[name] for name in sorted(texts)], 0).encode())

    def _encoded(self, name: str, config: C) -> str:
        """Returns the settings as JSON.

        The result is cached. Otherwise each new topic would block the broker for 0.2 s to encode up to 20,000 topics.
        """
        known = self._texts.get(name)
        if known is None or known[0] is not config:
            value = dict(sorted({**self._others.get(name, {}), **msgspec.to_builtins(config)}.items()))
            known = self._texts[name] = config, fastjson.member(name, value, 1)
        return known[1]

    def get(self, name: str) -> C | None:
        """Returns the settings of a topic or group, or None if there are none."""
        return self._table.get(name)

    def put(self, config: C, now_ms: int) -> None:
        """Adds the settings, or replaces those with the same name."""
        self._table[self._name_of(config)] = config
        self.data_version = self.data_version.next(now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Removes the settings of a topic or group. Returns whether they existed."""
        if self._table.pop(name, None) is None:
            return False
        self._texts.pop(name, None)
        self._others.pop(name, None)
        self.data_version = self.data_version.next(now_ms)
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._table.values()))

    def __len__(self) -> int:
        return len(self._table)

    def _parse(self, content: dict[str, Any]) -> tuple[dict[str, C], TableVersion]:
        table = content.get(self._member) or {}
        configs = {name: self._from_json(name, value) for name, value in table.items()}
        self._others = {}
        for name, config in configs.items():
            known = msgspec.to_builtins(config)
            if others := {member: value for member, value in table[name].items() if member not in known}:
                self._others[name] = others
        return configs, TableVersion.from_json(content.get(_DATA_VERSION))
