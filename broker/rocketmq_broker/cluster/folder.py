"""The folder of a cluster: a store for each broker, the settings that it was started with, and marks of those taken away."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.plan import ClusterPlan, FolderFacts
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.protocol.java_properties import property_line

_TAKEN_AWAY: Final = ".taken-away"
_LOCK: Final = "cluster.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder and holds its lock during the block. Raises ClusterMistake if another supervisor holds it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ClusterMistake(f"the folder {folder} cannot be used: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ClusterMistake(f"another cluster runs on {folder}: stop it, or name another folder (storePathRootDir)") from None
    try:
        yield
    finally:
        os.close(descriptor)


def refuse_a_single_broker(folder: Path) -> None:
    """Raises ClusterMistake if the folder is a cluster's: a single broker would begin there with an empty store."""
    if (folder / _LOCK).exists():
        raise ClusterMistake(f"{folder} is the folder of a cluster: start it with --brokers, or name another (storePathRootDir)")


def look_into(folder: Path) -> FolderFacts:
    """Returns what the folder holds; a missing one holds nothing."""
    if not folder.is_dir():
        return FolderFacts()
    stores = {path.name for path in folder.iterdir() if path.is_dir() and _is_store(path)}
    taken_away = {path.name.removesuffix(_TAKEN_AWAY) for path in folder.glob(f"*{_TAKEN_AWAY}")}
    return FolderFacts(frozenset(stores), frozenset(taken_away), _is_store(folder))


def _is_store(path: Path) -> bool:
    return (path / "commitlog").is_dir() or (path / "config").is_dir()


def mark_taken_away(folder: Path, name: str, text: str) -> None:
    """Marks a broker as taken away; durable when it returns. The text is for people."""
    path = _mark(folder, name)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unmark(folder: Path, name: str) -> None:
    """Removes the mark of a broker that takes part again."""
    with contextlib.suppress(FileNotFoundError):
        _mark(folder, name).unlink()


def _mark(folder: Path, name: str) -> Path:
    return folder / f"{name}{_TAKEN_AWAY}"


def write_broker_conf(folder: Path, settings: BrokerSettings) -> Path:
    """Writes a broker's settings, all of them, for this user only: they may hold passwords. Returns the file."""
    path = folder / f"{settings.broker_name}.conf"
    _write(path, msgspec.to_builtins(settings))
    return path


def write_namesrv_conf(plan: ClusterPlan, settings: BrokerSettings) -> Path:
    """Writes the settings of the cluster's name server. Returns the file."""
    path = plan.folder / "namesrv.conf"
    kept = {name: value for name, value in settings.tls.items() if value and name != "tls.config.file"}
    address = {"listenPort": settings.namesrv_listen_port, "bindAddress": settings.bind_address}
    _write(path, {**kept, **address, "kvConfigPath": str(plan.folder / "namesrv" / "kvConfig.json")})
    return path


def _write(path: Path, values: dict[str, object]) -> None:
    lines = [property_line(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in values.items()]
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(lines))
