"""The KV config, which stores keys and values that operators set, grouped by namespace (RocketMQ's KVConfigManager)."""

import os
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_broker.platform.durability import sync_directory, sync_file

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""The namespace that contains, for each ordered topic, the number of queues at each broker."""


class _Content(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] = {}


class KVConfig:
    """A table of values, stored in a file, or in memory if the path is None.

    Changes are flushed to disk before the method returns.
    """

    def __init__(self, path: Path | None) -> None:
        """Loads the table from the file. Raises OSError or ValueError if the file exists but cannot be read."""
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        if path is not None and path.exists() and (content := path.read_bytes()):
            self._table = msgspec.json.decode(content, type=_Content).config_table

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value. Raises OSError, and changes nothing, if the file cannot be written."""
        self._change(namespace, {**self._table.get(namespace, {}), key: value})

    def delete(self, namespace: str, key: str) -> None:
        """Deletes a value. Raises OSError, and changes nothing, if the file cannot be written."""
        values = self._table.get(namespace, {})
        if key in values:
            self._change(namespace, {name: value for name, value in values.items() if name != key})

    def get(self, namespace: str, key: str) -> str | None:
        """Returns the value, or None."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Returns all values of a namespace, or None if the namespace does not exist."""
        return self._table.get(namespace)

    def _change(self, namespace: str, values: dict[str, str]) -> None:
        changed = {**self._table, namespace: values}
        if self._path is not None:
            _write(self._path, changed)
        self._table = changed


def _write(path: Path, table: dict[str, dict[str, str]]) -> None:
    """Writes the table to a temporary file, and renames the file to `path`.

    Both the content and the rename are on disk when the function returns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(_Content(table)))
        file.flush()
        sync_file(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)
