"""Names and values by namespace that operators keep on the name server (RocketMQ's KVConfigManager)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""The namespace of ordered topics: which queues each broker keeps for them."""


class _Content(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] = {}


class KVConfig:
    """The table, in a file or, without a path, in memory. A change is in the file when the method returns."""

    def __init__(self, path: Path | None) -> None:
        """Raises OSError or ValueError if the file is there but cannot be read."""
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        if path is not None and path.exists() and (content := path.read_bytes()):
            self._table = msgspec.json.decode(content, type=_Content).config_table

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value. Raises OSError."""
        self._table.setdefault(namespace, {})[key] = value
        self._persist()

    def delete(self, namespace: str, key: str) -> None:
        """Forgets a value. Raises OSError."""
        if self._table.get(namespace, {}).pop(key, None) is not None:
            self._persist()

    def get(self, namespace: str, key: str) -> str | None:
        """The value, or None."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All values of a namespace, or None if there is no such."""
        return self._table.get(namespace)

    def _persist(self) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(self._path.name + ".tmp")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_Content(self._table)))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
