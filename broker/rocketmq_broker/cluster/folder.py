"""Manages the folder of a cluster.

It contains a store and a settings file for each broker, and a marker file for each removed broker.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.plan import ClusterPlan, FolderFacts
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.platform.durability import sync_directory, sync_file
from rocketmq_broker.platform.locks import lock
from rocketmq_broker.protocol.java_properties import property_line

_REMOVED: Final = ".taken-away"
_LOCK: Final = "cluster.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Creates the folder and holds its lock during the block. Raises ClusterMistake if another supervisor holds the lock."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ClusterMistake(f"cannot use the folder {folder}: {error.strerror}") from None
    if not _is_locked(descriptor):
        os.close(descriptor)
        raise ClusterMistake(f"another cluster is running in {folder}: stop it, or change storePathRootDir") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    try:
        return lock(descriptor)
    except OSError:
        return False


def refuse_a_single_broker(folder: Path) -> None:
    """Raises ClusterMistake if the folder belongs to a cluster, because a single broker would start there with an empty store."""
    if (folder / _LOCK).exists():
        raise ClusterMistake(f"{folder} contains the stores of a cluster: start with --brokers, or change storePathRootDir")


def read_folder(folder: Path) -> FolderFacts:
    """Returns the contents of the folder. A missing folder counts as empty."""
    if not folder.is_dir():
        return FolderFacts()
    stores = {path.name for path in folder.iterdir() if path.is_dir() and _is_store(path)}
    removed = {path.name.removesuffix(_REMOVED) for path in folder.glob(f"*{_REMOVED}")}
    return FolderFacts(frozenset(stores), frozenset(removed), _is_store(folder))


def _is_store(path: Path) -> bool:
    return (path / "commitlog").is_dir() or (path / "config").is_dir()


def mark_removed(folder: Path, name: str, text: str) -> None:
    """Marks a broker as removed. The mark is durable when the function returns. `text` is the content of the file."""
    path = _mark(folder, name)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{text}\n")
        file.flush()
        sync_file(file.fileno())
    sync_directory(folder)


def unmark(folder: Path, name: str) -> None:
    """Deletes the mark of a broker that has joined the cluster again."""
    with contextlib.suppress(FileNotFoundError):
        _mark(folder, name).unlink()


def _mark(folder: Path, name: str) -> Path:
    return folder / f"{name}{_REMOVED}"


def write_broker_conf(folder: Path, settings: BrokerSettings) -> Path:
    """Writes all settings of a broker, and returns the file's path. Only the current user can read the file.

    The settings may contain passwords.
    """
    path = folder / f"{settings.broker_name}.conf"
    _write(path, msgspec.to_builtins(settings))
    return path


def write_namesrv_conf(plan: ClusterPlan, settings: BrokerSettings) -> Path:
    """Writes the settings of the cluster's name server. Returns the file's path."""
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
