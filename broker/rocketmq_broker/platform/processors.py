"""The processors that this process may use."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path


def usable_processors(root: Path = Path("/")) -> float:
    """Returns the number of processors that this process may use. On Linux, CPU affinity and cgroup quotas (v1, v2) count."""
    if sys.platform != "linux":
        return float(os.cpu_count() or 1)
    return min([float(len(os.sched_getaffinity(0))), *_quotas(root)])


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
