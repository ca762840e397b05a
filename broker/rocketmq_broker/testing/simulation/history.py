"""Everything that happens in a simulated world, in order: some of it to be read, all of it in one digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedHappening:
    """An event that a person may read."""

    at_ns: int
    """Nanoseconds since the world began."""
    process: str
    """The name of the process, machine or link where it happened."""
    kind: str
    text: str
    keys: tuple[str, ...] = ()
    """Orders, transactions and messages that it is about."""
    to: str | None = None
    """Where it arrives, if it is sent."""


class History:
    """The happenings of one world, and the digest of all that happened."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        """`now_ns` returns the nanoseconds since the world began."""
        self._now_ns = now_ns
        self._hash = hashlib.blake2b(digest_size=16)
        self.happenings: list[RecordedHappening] = []

    def note(self, process: str, kind: str, text: str, keys: tuple[str, ...] = (), to: str | None = None) -> None:
        """Keeps a happening, and mixes it into the digest."""
        at_ns = self._now_ns()
        self.happenings.append(RecordedHappening(at_ns, process, kind, text, keys, to))
        self._hash.update(f"{at_ns}|{process}|{kind}|{text}|{keys}|{to}\n".encode())

    def mix(self, *parts: str | int | bytes) -> None:
        """Mixes an event that nobody reads into the digest, with its time."""
        self._hash.update(f"{self._now_ns()}|{parts}\n".encode())

    def mix_data(self, place: str, data: bytes) -> None:
        """Mixes data that arrives somewhere into the digest, with its time."""
        self._hash.update(f"{self._now_ns()}|{place}|{len(data)}\n".encode())
        self._hash.update(data)

    @property
    def digest(self) -> str:
        """The digest of everything so far, in hexadecimal digits."""
        return self._hash.hexdigest()
