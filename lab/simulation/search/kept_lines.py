"""A file of results with one JSON object per line. Complete lines remain readable after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class KeptLines(Generic[T]):
    """The results in a JSON Lines file. Each line is written immediately.

    Incomplete lines of an interrupted process, and lines with other content, are skipped.
    """

    def __init__(self, file: Path, kind: type[T]) -> None:
        """Reads the results of earlier runs from the file. `kind` is the type of a line."""
        self._file = file
        self.read: list[T] = []
        """The results of earlier runs."""
        text = file.read_bytes() if file.exists() else b""
        self._is_torn = not text.endswith(b"\n") and text != b""
        for line in text.split(b"\n"):
            try:
                self.read.append(msgspec.json.decode(line, type=kind))
            except msgspec.MsgspecError:
                continue

    def append(self, result: T) -> None:
        """Adds a result to the file."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as file:
            file.write((b"\n" if self._is_torn else b"") + msgspec.json.encode(result) + b"\n")
        self._is_torn = False
