"""Names, ports and stores of a cluster's brokers, worked out from one broker.conf."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.config import BrokerSettings

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PORTS_APART: Final = 10
"""listenPort of one broker to that of the next: each takes listenPort - 2 as well, as the VIP channel."""
_HIGHEST_PORT: Final = 65_535
_READ_ONLY: Final = 4
"""brokerPermission of a broker that leaves: clients read from it, and send to the others."""


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """The contents of a cluster's folder, by the brokers' names."""

    stores: frozenset[str] = frozenset()
    """Names of sub-folders that hold a broker's store."""
    taken_away: frozenset[str] = frozenset()
    """Brokers that were drained and stopped."""
    is_store: bool = False
    """True if the folder itself is the store of a single broker."""


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker of a cluster."""

    settings: BrokerSettings
    is_new: bool = False
    """True if it has no store yet."""
    is_back: bool = False
    """True if it was taken away, and takes part again."""
    is_leaving: bool = False
    """True if it takes no new messages, and stops when it is drained."""

    @property
    def name(self) -> str:
        """The brokerName."""
        return self.settings.broker_name

    @property
    def number(self) -> int:
        """The least --brokers with which it takes part."""
        return _LETTERS.index(self.name[-1]) + 1


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The brokers of a cluster, those that leave included, and its name server."""

    folder: Path
    namesrv_addr: str
    has_name_server: bool
    """False if the brokers register with name servers elsewhere (namesrvAddr)."""
    brokers: tuple[PlannedBroker, ...]
    resting: tuple[str, ...] = ()
    """Brokers that were taken away, and stay so. Their stores are kept."""


def plan_cluster(settings: BrokerSettings, count: int, facts: FolderFacts) -> ClusterPlan:
    """Returns the cluster of `count` brokers on the folder storePathRootDir. Raises ClusterMistake.

    A broker with a store that is beyond `count` leaves, unless it was taken away before.
    """
    folder = settings.store_root
    if not 1 <= count <= len(_LETTERS):
        raise ClusterMistake(f"--brokers {count}: 1 to {len(_LETTERS)} brokers run on one machine")
    if facts.is_store:
        raise ClusterMistake(
            f"{folder} holds the store of a single broker: stop it, and move its store to {folder}/{_names(settings)[0]}; "
            "or name another folder (storePathRootDir)"
        )
    names = _names(settings)
    _refuse_strangers(folder, names, facts.stores)
    if not settings.name_servers and settings.namesrv_listen_port == 0:
        raise ClusterMistake("namesrvListenPort=0: a cluster's name server needs a port that stays")
    host = "127.0.0.1" if settings.bind_address in ("0.0.0.0", "::") else settings.bind_address
    namesrv_addr = ";".join(settings.name_servers) or f"{host}:{settings.namesrv_listen_port}"
    wanted = set(names[:count])
    leaving = facts.stores - wanted - facts.taken_away
    brokers = [
        PlannedBroker(
            _settings_of(settings, index, name, namesrv_addr, is_leaving=name in leaving),
            is_new=name not in facts.stores,
            is_back=name in facts.taken_away and name in facts.stores,
            is_leaving=name in leaving,
        )
        for index, name in enumerate(names)
        if name in wanted | leaving
    ]
    resting = tuple(sorted(facts.stores & facts.taken_away - wanted))
    return ClusterPlan(folder, namesrv_addr, not settings.name_servers, tuple(brokers), resting)


def _names(settings: BrokerSettings) -> list[str]:
    """Returns broker-a, broker-b and so on, as RocketMQ's own examples name them."""
    stem = settings.broker_name.removesuffix("-a")
    return [f"{stem}-{letter}" for letter in _LETTERS]


def _refuse_strangers(folder: Path, names: Collection[str], stores: Collection[str]) -> None:
    strangers = sorted(set(stores) - set(names))
    if strangers:
        raise ClusterMistake(
            f"{folder} holds stores of brokers with other names: {', '.join(strangers)}; "
            "set the brokerName that they were made with, or name another folder (storePathRootDir)"
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
    if (highest := max(listen_port, metrics_port, grpc_port)) > _HIGHEST_PORT:
        raise ClusterMistake(f"{name} would listen on port {highest}: the highest is {_HIGHEST_PORT}")
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
