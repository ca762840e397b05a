"""Failpoints that a demo arms in running processes. An armed failpoint is a file in a folder; the file has the failpoint's name.

A message or task that contains the file's content hits the failpoint. The hit deletes the file, so a failpoint is hit only once,
even if the process exits at the failpoint and restarts, or if several processes share the folder. The file `hits` in the same
folder records each hit as a line of JSON.
"""

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

EXIT_STATUS: Final = 86
"""The exit status at a failpoint, which distinguishes it from an accidental exit."""

_HITS: Final = "hits"

logger = logging.getLogger(__name__)


def exit_at_once() -> None:
    """Exits the process without clean-up, like a crash."""
    os._exit(EXIT_STATUS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a failpoint."""

    at_ms: int
    failpoint: str
    meant_for: str
    """The content of the file that armed the failpoint."""
    transaction_id: str | None
    """The transaction id; None if the step belongs to no transaction or to several."""


class FailedOnPurpose(Exception):
    """Raised at a failpoint that drops a request or a response. The text names the failpoint."""

    def __init__(self, failpoint: str) -> None:
        super().__init__(f"failpoint {failpoint}")


class Failpoints(Protocol):
    """The interface of armed failpoints."""

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns True if a message with this content hits the failpoint."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Combines several `Failpoints`."""

    failpoints: Sequence[Failpoints]

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns True if one of the `failpoints` is hit by a message with this content. Stops at the first hit."""
        return any(armed.is_hit(name, content, transaction_id) for armed in self.failpoints)


@dataclass(frozen=True, slots=True)
class ArmedFailpoints:
    """The failpoints in a folder. The folder may be missing."""

    folder: Path
    now_ms: Callable[[], int]

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns True if the failpoint is armed for this content. If so, disarms the failpoint and records the hit."""
        armed = self.folder / name
        try:
            meant_for = armed.read_bytes().strip()
            if meant_for not in content:
                return False
            armed.unlink()
        except FileNotFoundError:
            return False
        logger.warning("failpoint %s was hit", name)
        hit = Hit(self.now_ms(), name, meant_for.decode(errors="replace"), transaction_id)
        with (self.folder / _HITS).open("a") as hits:
            hits.write(json.dumps(asdict(hit)) + "\n")
        return True


def read_hits(folder: Path) -> list[Hit]:
    """Returns the recorded hits, oldest first."""
    try:
        lines = (folder / _HITS).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [Hit(**json.loads(line)) for line in lines]
