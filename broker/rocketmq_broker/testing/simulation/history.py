"""Records the history of a simulated world: readable events, and a digest of everything that happens."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """A human-readable event in the history of a world."""

    at_ns: int
    """The nanoseconds since the world began."""
    process: str
    """The name of the process, machine or link where the event occurred."""
    kind: str
    text: str
    keys: tuple[str, ...] = ()
    """The orders, transactions and messages that the event concerns."""
    to: str | None = None
    """The receiver, if something was sent."""


class History:
    """The readable events of one world, and the digest of everything that happened."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        """Creates an empty history. `now_ns` returns the nanoseconds since the world began."""
        self._now_ns = now_ns
        self._hash = hashlib.blake2b(digest_size=16)
        self.happenings: list[RecordedEvent] = []

    def note(self, process: str, kind: str, text: str, keys: tuple[str, ...] = (), to: str | None = None) -> None:
        """Records a readable event, and adds it to the digest."""
        at_ns = self._now_ns()
        self.happenings.append(RecordedEvent(at_ns, process, kind, text, keys, to))
        self._hash.update(f"{at_ns}|{process}|{kind}|{text}|{keys}|{to}\n".encode())

    def mix(self, *parts: str | int | bytes) -> None:
        """Adds an event to the digest only, with its time."""
        self._hash.update(f"{self._now_ns()}|{parts}\n".encode())

    def mix_data(self, place: str, data: bytes) -> None:
        """Adds received data to the digest, with its time."""
        self._hash.update(f"{self._now_ns()}|{place}|{len(data)}\n".encode())
        self._hash.update(data)

    @property
    def digest(self) -> str:
        """The digest of all recorded events so far, in hexadecimal."""
        return self._hash.hexdigest()
