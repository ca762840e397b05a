"""Fetches packages of npm and PyPI in a fixed version and with a fixed checksum, and reads the versions of a lock file."""

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class CannotFetch(Exception):
    """Raised if a package cannot be fetched. The error message contains the reason."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A package with a fixed version, and the SHA-256 checksum of its file in the registry."""

    name: str
    version: str
    sha256: str


def npm_package(pinned: Pinned, folder: Path) -> Path:
    """Returns the path of an npm package in the folder. Downloads the package if it is not there. Raises CannotFetch."""
    file = folder / f"{pinned.name.removeprefix('@').replace('/', '-')}-{pinned.version}.tgz"
    return fetched(pinned, file, ["npm", "pack", "--silent", f"{pinned.name}@{pinned.version}"])


def fetched(pinned: Pinned, file: Path, command: list[str]) -> Path:
    """Returns the path `file`. If there is no such file, runs the command that downloads it in the file's folder.

    Raises CannotFetch if there is still no file. Removes a file with another checksum, and raises CannotFetch.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        _run(command, file.parent)
    if not file.exists():
        raise CannotFetch(f"the download of {pinned.name} {pinned.version} did not create the file {file.name}")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != pinned.sha256:
        file.unlink()
        raise CannotFetch(f"{file.name} has the SHA-256 checksum {found}, not {pinned.sha256}")
    return file


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise CannotFetch(f"{command[0]} is missing: apt-get install {command[0]}")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise CannotFetch(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()}")


def locked_versions(lock: Path) -> dict[str, str]:
    """Returns the version of each package in a lock file, by the package's name without extras."""
    return dict(re.findall(r"^([\w.-]+)(?:\[[\w,.-]+\])?==(\S+)", lock.read_text(), re.MULTILINE))
