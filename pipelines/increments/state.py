"""What is kept between runs: files that are never changed, and a manifest that names those that count.

A run writes its files into a folder of its own, and replaces the manifest last, in one step. A run that is broken off leaves the
manifest of the last good one, and files that the next one removes. One run at a time has the state.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from pipelines.errors import StateUnusable
from pipelines.increments.marks import Marks

VERSION: Final = 2
DAY_MS: Final = 86_400_000
OPEN: Final = "open.parquet"
CARRIED: Final = "carried.parquet"
MARKERS: Final = "markers.parquet"
_MANIFEST: Final = "manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """What the last good run left."""

    run: str
    """Its folder: what is open, what is carried, and the markers."""
    as_of_ms: int
    books: dict[str, str]
    """Which sources it is about."""
    marks: Marks
    log_begins_ms: int | None
    windows: dict[str, str] = {}
    """By window, the folder of the run that wrote it last."""
    customers: list[str] = []
    """Whose balance was wrong."""
    version: int = VERSION


class State:
    """A folder that belongs to one run at a time."""

    def __init__(self, folder: Path, window_ms: int = DAY_MS) -> None:
        """`window_ms` is the length of a window of settled histories."""
        self.folder = folder
        self.window_ms = window_ms

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Has the folder for this run alone. Raises StateUnusable if another run has it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError:
            raise StateUnusable(f"state {self.folder}: another run has it: wait until it is over") from None
        except OSError as error:
            raise StateUnusable(f"state {self.folder}: {error.strerror or error}") from None

    def check(self) -> None:
        """Returns if no other run has the folder at this moment. Raises StateUnusable."""
        with self.taken():
            pass

    def read(self, books: Mapping[str, str]) -> Manifest | None:
        """What the last good run left; None without one. Raises StateUnusable, also if it was about other books."""
        path = self.folder / _MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise StateUnusable(f"state {path}: {error}: use --full") from None
        if manifest.version != VERSION:
            raise StateUnusable(f"state {path} has version {manifest.version}: use --full")
        if manifest.books != dict(books):
            raise StateUnusable(f"state {self.folder} is about other books ({_differences(manifest.books, books)}): use --full")
        return manifest

    def new_run(self, as_of_ms: int) -> Path:
        """An empty folder for the files of a run."""
        path = self.folder / f"run-{as_of_ms}-{secrets.token_hex(4)}"
        path.mkdir()
        return path

    def replace(self, manifest: Manifest) -> None:
        """Makes the manifest the one that counts, and removes what it does not name."""
        fresh = self.folder / f".{_MANIFEST}.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self.folder / _MANIFEST)
        self.clear(manifest)

    def clear(self, manifest: Manifest | None) -> None:
        """Removes what runs have left that were broken off, or have been overtaken."""
        kept = set() if manifest is None else {manifest.run, *manifest.windows.values()}
        for path in self.folder.glob("run-*"):
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def window(self, run: str, window: str) -> Path:
        """Where a run has written the settled histories of a window."""
        return self.folder / run / "settled" / f"window={window}"

    def sums(self, run: str, window: str) -> Path:
        """Where a run has written what the histories of a window add up to."""
        return self.folder / run / "sums" / f"{window}.parquet"


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return "; ".join(f"{name}: {before.get(name)} before, {now.get(name)} now" for name in names)
