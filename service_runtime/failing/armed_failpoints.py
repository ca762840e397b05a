"""Failpoints that a demo arms in running processes: a file in a folder, named like the failpoint, and deleted by the hit.

The file's content says for whom it is meant: a message or task that contains it hits the failpoint. The process that first
deletes the file has the hit: so there is one hit, even if the process ends there and starts again, or several processes share the
folder. The file `hits` beside it records the hits, a line of JSON each.
"""

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

EXIT_STATUS: Final = 86
"""The exit status at a failpoint, different from an accident's."""

_HITS: Final = "hits"

logger = logging.getLogger(__name__)


def exit_at_once() -> None:
    """Ends the process without clean-up, as a crash does."""
    os._exit(EXIT_STATUS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A failpoint's hit."""

    at_ms: int
    failpoint: str
    meant_for: str
    """The content of the file that armed it."""
    transaction_id: str | None
    """None where the place knows no transaction, or several."""


class FailedOnPurpose(Exception):
    """The failure at a failpoint that loses something; the text names the failpoint."""

    def __init__(self, failpoint: str) -> None:
        super().__init__(f"failpoint {failpoint}")


class Failpoints(Protocol):
    """Failpoints that are armed in some way."""

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns whether a message of this content hits the failpoint of that name."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Failpoints that are armed in several ways."""

    failpoints: Sequence[Failpoints]

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns whether a message of this content hits the failpoint of that name; the first that it hits counts."""
        return any(armed.is_hit(name, content, transaction_id) for armed in self.failpoints)


@dataclass(frozen=True, slots=True)
class ArmedFailpoints:
    """The failpoints of a folder, which may be missing."""

    folder: Path
    now_ms: Callable[[], int]

    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        """Returns whether the failpoint was armed for this content. If so, disarms it and records the hit."""
        armed = self.folder / name
        try:
            meant_for = armed.read_bytes().strip()
            if meant_for not in content:
                return False
            armed.unlink()
        except FileNotFoundError:
            return False
        logger.warning("failpoint %s is hit", name)
        hit = Hit(self.now_ms(), name, meant_for.decode(errors="replace"), transaction_id)
        with (self.folder / _HITS).open("a") as hits:
            hits.write(json.dumps(asdict(hit)) + "\n")
        return True


def read_hits(folder: Path) -> list[Hit]:
    """Returns the hits, the oldest first."""
    try:
        lines = (folder / _HITS).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [Hit(**json.loads(line)) for line in lines]
