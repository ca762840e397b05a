"""Tests how many processors a process may use."""

import os
from pathlib import Path

import pytest

from rocketmq_broker.platform.processors import usable_processors


@pytest.mark.parametrize(
    ("groups", "files", "processors"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/shop.slice/broker.service\n", {"shop.slice/broker.service/cpu.max": "50000 100000\n"}, 0.5),
        ("3:cpuset:/\n1:cpu,cpuacct:/docker/1\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ("1:cpu:/docker/1\n", {"cpu/docker/1/cpu.cfs_quota_us": "-1\n", "cpu/docker/1/cpu.cfs_period_us": "100000\n"}, 64),
        ("", {}, 64),
    ],
    ids=["a quota", "no quota", "a group of systemd", "cgroup v1", "cgroup v1 without a quota", "no groups"],
)
def test_a_quota_counts_as_so_many_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], processors: float
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert usable_processors(tmp_path) == processors


def test_the_processors_that_a_process_may_use_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert usable_processors(tmp_path) == 1
