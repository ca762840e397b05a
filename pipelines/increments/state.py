"""The state between incremental runs, which consists of immutable files and a manifest that lists the valid ones.

A run writes its files into its own folder, and then replaces the manifest atomically. After an interrupted run the manifest of
the last successful run is still valid, and the next run removes the other files. Only one run at a time can use the state.
"""

import fcntl
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from pipelines.errors import StateUnusable
from pipelines.increments.marks import Marks
from pipelines.run_folders import replace_file

VERSION: Final = 3
DAY_MS: Final = 86_400_000
OPEN: Final = "open.parquet"
CARRIED: Final = "carried.parquet"
MARKERS: Final = "markers.parquet"
_MANIFEST: Final = "manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """The manifest of the last successful run."""

    run: str
    """The run's folder, with the open histories, the carried records and the markers."""
    as_of_ms: int
    books: dict[str, str]
    """The names of the sources from which the state was computed."""
    marks: Marks
    log_begins_ms: int | None
    windows: dict[str, str] = {}
    """Maps each window of settled histories (see `windows`) to the folder of the run that last wrote it."""
    customers: list[str] = []
    """The customers with a wrong balance."""
    version: int = VERSION


class IncrementState:
    """The state's folder, which one run at a time can use."""

    def __init__(self, folder: Path, window_ms: int = DAY_MS) -> None:
        """`window_ms` is the length in milliseconds of the windows of settled histories."""
        self.folder = folder
        self.window_ms = window_ms

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Locks the folder for this run. Raises StateUnusable if another run has locked it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError:
            raise StateUnusable(f"state {self.folder}: another run is using it; wait until it has finished") from None
        except OSError as error:
            raise StateUnusable(f"cannot use the folder {self.folder} for the state: {error.strerror or error}") from None

    def check(self) -> None:
        """Raises StateUnusable if another run is using the folder."""
        with self.taken():
            pass

    def read(self, books: Mapping[str, str]) -> Manifest | None:
        """Returns the last successful run's manifest, or None. Raises StateUnusable if it is invalid or for other sources."""
        path = self.folder / _MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise StateUnusable(f"state {path}: {error}; use --full") from None
        if manifest.version != VERSION:
            raise StateUnusable(f"state {path} has version {manifest.version}, not {VERSION}; use --full")
        if manifest.books != dict(books):
            raise StateUnusable(
                f"state {self.folder} belongs to other databases or stores ({_differences(manifest.books, books)}); use --full"
            )
        return manifest

    def new_run(self, as_of_ms: int) -> Path:
        """Creates an empty folder for the files of a run."""
        path = self.folder / f"run-{as_of_ms}-{secrets.token_hex(4)}"
        path.mkdir()
        return path

    def replace(self, manifest: Manifest) -> None:
        """Writes the manifest, and removes files that it does not list."""
        replace_file(self.folder / _MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        self.clear(manifest)

    def clear(self, manifest: Manifest | None) -> None:
        """Removes the files of interrupted and superseded runs."""
        kept = set() if manifest is None else {manifest.run, *manifest.windows.values()}
        for path in self.folder.glob("run-*"):
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def window(self, run: str, window: str) -> Path:
        """Returns the path of the settled histories of a window, as written by the run."""
        return self.folder / run / "settled" / f"window={window}"

    def sums(self, run: str, window: str) -> Path:
        """Returns the path of the sums over a window, as written by the run."""
        return self.folder / run / "sums" / f"{window}.parquet"


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return "; ".join(f"{name}: {before.get(name)} before, {now.get(name)} now" for name in names)
