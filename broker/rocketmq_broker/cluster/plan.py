"""Derives the names, ports and stores of a cluster's brokers from one broker.conf."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.config import BrokerSettings

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PORTS_APART: Final = 10
"""The difference between the listenPorts of two brokers. Each broker also uses listenPort - 2, for the VIP channel."""
_MAX_PORT: Final = 65_535
_READ_ONLY: Final = 4
"""The brokerPermission of a broker that leaves the cluster. Clients read from this broker, but send to the other brokers."""


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """The contents of a cluster's folder. Brokers are identified by their names."""

    stores: frozenset[str] = frozenset()
    """The names of subfolders that contain a broker's store."""
    removed: frozenset[str] = frozenset()
    """The names of brokers that have been drained and stopped."""
    is_store: bool = False
    """True if the folder itself is the store of a single broker."""


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker of a cluster."""

    settings: BrokerSettings
    is_new: bool = False
    """True if the broker has no store yet."""
    is_rejoining: bool = False
    """True if the broker was removed from the cluster before."""
    is_leaving: bool = False
    """True if the broker accepts no new messages and is stopped once it is drained."""

    @property
    def name(self) -> str:
        """The broker's name (brokerName)."""
        return self.settings.broker_name

    @property
    def number(self) -> int:
        """The smallest value of --brokers for which this broker is part of the cluster."""
        return _LETTERS.index(self.name[-1]) + 1


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The brokers of a cluster, including those that leave, and its name server."""

    folder: Path
    namesrv_addr: str
    has_name_server: bool
    """False if the brokers register with external name servers (namesrvAddr)."""
    brokers: tuple[PlannedBroker, ...]
    removed: tuple[str, ...] = ()
    """The names of brokers that were removed earlier and are not started. Their stores are kept."""


def plan_cluster(settings: BrokerSettings, count: int, facts: FolderFacts) -> ClusterPlan:
    """Returns the plan of a cluster of `count` brokers in the folder storePathRootDir. Raises ClusterMistake.

    A broker with a higher number than `count` leaves the cluster if it has a store and was not removed before.
    """
    folder = settings.store_root
    if not 1 <= count <= len(_LETTERS):
        raise ClusterMistake(f"--brokers must be between 1 and {len(_LETTERS)}, not {count}")
    if facts.is_store:
        raise ClusterMistake(
            f"{folder} contains the store of a single broker: stop it and move its store to {folder}/{_names(settings)[0]}, "
            "or change storePathRootDir"
        )
    names = _names(settings)
    _refuse_other_names(folder, names, facts.stores)
    if not settings.name_servers and settings.namesrv_listen_port == 0:
        raise ClusterMistake("namesrvListenPort must not be 0: the name server of a cluster needs a fixed port")
    host = "127.0.0.1" if settings.bind_address in ("0.0.0.0", "::") else settings.bind_address
    namesrv_addr = ";".join(settings.name_servers) or f"{host}:{settings.namesrv_listen_port}"
    wanted = set(names[:count])
    leaving = facts.stores - wanted - facts.removed
    brokers = [
        PlannedBroker(
            _settings_of(settings, index, name, namesrv_addr, is_leaving=name in leaving),
            is_new=name not in facts.stores,
            is_rejoining=name in facts.removed and name in facts.stores,
            is_leaving=name in leaving,
        )
        for index, name in enumerate(names)
        if name in wanted | leaving
    ]
    removed = tuple(sorted(facts.stores & facts.removed - wanted))
    return ClusterPlan(folder, namesrv_addr, not settings.name_servers, tuple(brokers), removed)


def _names(settings: BrokerSettings) -> list[str]:
    """Returns broker-a, broker-b and so on, the names in RocketMQ's own examples."""
    stem = settings.broker_name.removesuffix("-a")
    return [f"{stem}-{letter}" for letter in _LETTERS]


def _refuse_other_names(folder: Path, names: Collection[str], stores: Collection[str]) -> None:
    others = sorted(set(stores) - set(names))
    if others:
        raise ClusterMistake(
            f"{folder} contains stores of brokers with other names: {', '.join(others)}; "
            "set the brokerName that they were created with, or change storePathRootDir"
        )


def _settings_of(settings: BrokerSettings, index: int, name: str, namesrv_addr: str, *, is_leaving: bool) -> BrokerSettings:
    listen_port, metrics_port = settings.listen_port, settings.metrics_prom_exporter_port
    grpc_port = settings.grpc_server_port
    if listen_port:
        listen_port += index * _PORTS_APART
    if metrics_port:
        metrics_port += index
    if grpc_port > 0:
        grpc_port += index
    if (port := max(listen_port, metrics_port, grpc_port)) > _MAX_PORT:
        raise ClusterMistake(f"port of {name} too high: {port}, at most {_MAX_PORT}")
    commit_log = settings.store_path_commit_log
    return msgspec.structs.replace(
        settings,
        broker_name=name,
        listen_port=listen_port,
        metrics_prom_exporter_port=metrics_port,
        grpc_server_port=grpc_port,
        namesrv_addr=namesrv_addr,
        store_path_root_dir=str(settings.store_root / name),
        store_path_commit_log=str(Path(commit_log) / name) if commit_log else "",
        broker_permission=settings.broker_permission & _READ_ONLY if is_leaving else settings.broker_permission,
    )
