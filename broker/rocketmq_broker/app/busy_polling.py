"""Computes how long the broker polls for events before it sleeps. Polling needs a processor that the clients do not use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rocketmq_broker.config import BrokerSettings

_ENOUGH_PROCESSORS: Final = 2


def busy_poll_s(settings: BrokerSettings, processors: float) -> float:
    """Returns the polling time in seconds.

    Returns 0 if there are too few processors, or if gRPC is enabled, because the threads of gRPC need the interpreter lock.
    """
    if processors < _ENOUGH_PROCESSORS or settings.grpc_server_port >= 0:
        return 0.0
    return settings.busy_poll_micros / 1e6


def usable_processors(root: Path = Path("/")) -> float:
    """Returns the number of processors that this process may use, according to its affinity and its cgroup quotas (v1 and v2)."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(own), *_quotas(root)])


def _quotas(root: Path) -> Iterator[float]:
    """Yields the CPU quotas of this process, as numbers of processors.

    In a container, the control group of this process is mounted as the root, or under its path on the host (cgroup v1).
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in groups if line.count(":") > 1):
        if not controllers:
            yield from _quotas_in(root / "sys/fs/cgroup", path, "cpu.max")
        elif "cpu" in controllers.split(","):
            yield from _quotas_in(root / "sys/fs/cgroup/cpu", path, "cpu.cfs_quota_us", "cpu.cfs_period_us")


def _quotas_in(mount: Path, path: str, *names: str) -> Iterator[float]:
    for folder in {mount, mount / path.lstrip("/")}:
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            if int(quota) > 0:
                yield int(quota) / int(period)
        except (OSError, ValueError):  # no such group, or `max`, which means no quota
            continue
