"""Replaces all outputs of a run atomically, so that readers never find a mix of two runs.

    data/reconciliation/findings -> .reconciliation/latest/findings
    data/reconciliation/summary  -> .reconciliation/latest/summary
    data/reconciliation/.reconciliation/latest -> run-5a6b7c8d

A run writes into its own folder. Then it renames a new symbolic link to `latest`, which is atomic on POSIX file systems. The
folder of the previous run is kept until the next run, for readers that still use it.

An output in a single file, such as a report, is replaced by `replace_file`.
"""

import ctypes
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

_LATEST: Final = "latest"
_RENAME_EXCHANGE: Final = 2
_FROM_HERE: Final = -100
"""The constant AT_FDCWD of the system call. Relative paths are then resolved from the working directory."""


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file atomically. Only its owner can read it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with open(fresh, "xb", opener=partial(os.open, mode=0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)


@contextmanager
def replaced_together(output: Path, kind: str, names: Sequence[str]) -> Iterator[Path]:
    """Yields a folder for outputs with these names. After the block they replace the outputs of the last run atomically.

    If the block raises an error, nothing is replaced. Only the owner can read the outputs. `kind` separates the outputs of
    several programs in one folder. Raises OSError.
    """
    runs = output / f".{kind}"
    output.mkdir(mode=0o700, parents=True, exist_ok=True)
    runs.mkdir(mode=0o700, exist_ok=True)
    fresh = runs / f"run-{secrets.token_hex(4)}"
    fresh.mkdir(mode=0o700)
    try:
        yield fresh
        _close_to_others(fresh)
        _sync(fresh)
        _adopt(output, runs, names)
        before = os.readlink(runs / _LATEST) if (runs / _LATEST).is_symlink() else ""
        _point(runs / _LATEST, fresh.name)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    _sync_folder(runs)
    for path in runs.glob("run-*"):
        if path.name not in (fresh.name, before):
            shutil.rmtree(path, ignore_errors=True)


def _adopt(output: Path, runs: Path, names: Sequence[str]) -> None:
    """Links each name to its output in `latest`. A folder that an older version wrote is moved into a run's folder."""
    folders = [name for name in names if (output / name).is_dir() and not (output / name).is_symlink()]
    if folders and not (runs / _LATEST).is_symlink():
        adopted = runs / f"run-{secrets.token_hex(4)}"
        for name in folders:
            shutil.copytree(output / name, adopted / name, copy_function=_linked)
        _point(runs / _LATEST, adopted.name)
    for name in names:
        if not (output / name).is_symlink():
            _point(output / name, f"{runs.name}/{_LATEST}/{name}")


def _point(link: Path, target: str) -> None:
    """Creates a symbolic link. Replaces an existing file or folder of that name."""
    made = link.with_name(f".{link.name}.{secrets.token_hex(4)}")
    made.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        if not _exchanged(made, link):
            # Without an atomic exchange the name is missing for a moment, but only when an older version's folder is replaced.
            aside = link.with_name(f".{link.name}.{secrets.token_hex(4)}")
            link.rename(aside)
            made.rename(link)
            made = aside
        shutil.rmtree(made, ignore_errors=True)
    else:
        made.replace(link)


def _exchanged(one: Path, other: Path) -> bool:
    """Swaps two names atomically with Linux's renameat2. Returns False if the call is not available."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(renameat2(_FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _linked(source: str, target: str) -> str:
    """Creates a hard link to a file, or a copy if the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _close_to_others(folder: Path) -> None:
    """Makes all files of the folder readable by the owner only. Spark and Arrow create files with the umask's permissions."""
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _sync(folder: Path) -> None:
    """Syncs all files of the folder to the disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            with (Path(place) / name).open("rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(place))


def _sync_folder(folder: Path) -> None:
    """Syncs a folder. Ignores file systems that do not support it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
