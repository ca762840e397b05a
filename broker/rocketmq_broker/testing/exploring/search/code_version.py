"""Computes the version of a test and its code. Results are valid for one version only."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_SUFFIXES: Final = frozenset({".py", ".sql"})


def code_version(test: str, places: Sequence[Path]) -> str:
    """Returns twelve characters of a digest of the test's name, Python's version, and the sources in these folders and files.

    Skips hidden folders, and folders of virtual environments.
    """
    digest = hashlib.sha256(f"{test}\0{sys.version}".encode())
    for place in places:
        for path in sorted(_sources(place)):
            digest.update(f"\0{place.name}\0{path.relative_to(place).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _sources(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in place.iterdir():
        if path.is_dir():
            if not path.name.startswith(".") and not (path / "pyvenv.cfg").exists():
                yield from _sources(path)
        elif path.suffix in _SUFFIXES:
            yield path
