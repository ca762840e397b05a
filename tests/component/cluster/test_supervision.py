"""Tests that a cluster's processes are started, restarted and stopped, and that no process remains."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from demo.processes import Process
from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import locked
from rocketmq_broker.cluster.supervisor import SupervisorOptions, supervise
from rocketmq_broker.config import load_settings
from rocketmq_broker.world import current_world
from tests.component.cluster.conftest import RunningCluster
from tests.waiting import wait_until

PATIENCE_S = 60


def wait_for(text: str, supervisor: Process) -> None:
    """Waits until the supervisor has printed the text."""
    wait_until(lambda: text in supervisor.output() or not supervisor.is_running)
    assert text in supervisor.output(), supervisor.output()


def family(supervisor: Process) -> list[psutil.Process]:
    """Returns all descendants of the supervisor: the name server, the brokers, and the brokers' helpers."""
    return psutil.Process(supervisor.pid).children(recursive=True)


def are_gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_what_dies_is_started_again_and_ctrl_c_ends_all_of_them_cleanly(cluster: RunningCluster) -> None:
    supervisor = cluster.start(2)
    lines = supervisor.output().splitlines()
    begins = ("namesrv  | The Name Server boot", "broker-a | The broker[broker-a,", "broker-b | The broker[broker-b,")
    for begin in (*begins, "cluster  | The cluster[DefaultCluster, broker-a "):
        assert [line for line in lines if line.startswith(begin)], begin
    assert f"name server is {cluster.namesrv_addr}" in lines[-1]

    for name in ("namesrv", "broker-b"):
        killed = cluster.child(supervisor, name)
        killed.kill()
        wait_for(f"{name} was killed by SIGKILL; restart 1 of 10 in 0.5 s", supervisor)
        wait_until(lambda: sum(f"{name:8} | The " in line for line in supervisor.output().splitlines()) == 2)  # noqa: B023
        assert cluster.child(supervisor, name).pid != killed.pid

    children = family(supervisor)
    assert len(children) >= 3
    os.kill(supervisor.pid, signal.SIGINT)
    assert supervisor.wait(PATIENCE_S) == 0
    assert are_gone(children)
    for name in ("broker-a", "broker-b"):
        assert not (cluster.folder / name / "abort").exists(), f"{name} was not stopped cleanly"


def test_a_supervisor_that_is_killed_leaves_no_orphan(cluster: RunningCluster) -> None:
    supervisor = cluster.start(1)
    children = family(supervisor)
    assert len(children) >= 2
    cluster.child(supervisor, "broker-a").suspend()  # also a child that hangs
    supervisor.kill()
    assert are_gone(children)


def test_a_name_server_that_cannot_start_ends_the_start(cluster: RunningCluster) -> None:
    with socket.create_server(("127.0.0.1", int(cluster.settings["namesrvListenPort"]))):
        supervisor = cluster.add(1)
        supervisor.spawn()
        assert supervisor.wait(PATIENCE_S) == 1
    assert "The cluster cannot start: the name server cannot start on" in supervisor.output()


async def test_two_supervisors_do_not_share_a_folder(cluster: RunningCluster) -> None:
    options = SupervisorOptions(load_settings(cluster.conf).settings, 1, lambda name, text: None, current_world())
    with locked(cluster.folder), pytest.raises(ClusterMistake, match="another cluster is running in"):
        await supervise(options)


def test_a_single_broker_does_not_begin_in_a_cluster_s_folder(cluster: RunningCluster) -> None:
    with locked(cluster.folder):
        pass  # a cluster that ran
    command = [sys.executable, "-m", "rocketmq_broker", "-c", str(cluster.conf)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert told.returncode == 1
    assert "contains the stores of a cluster: start with --brokers" in told.stderr


def test_a_broker_that_cannot_start_is_tried_again_and_the_others_go_on(cluster: RunningCluster) -> None:
    (cluster.folder / "broker-b" / "config").mkdir(parents=True)
    (cluster.folder / "broker-b" / "lock").mkdir()  # no file that could be locked
    supervisor = cluster.add(2)
    supervisor.spawn()
    wait_for("broker-b ended with exit status 1; restart 2 of 10 in 1 s", supervisor)
    wait_for("broker-a | The broker[broker-a", supervisor)
    assert "broker-b | The broker cannot start" in supervisor.output()
    (cluster.folder / "broker-b" / "lock").rmdir()
    wait_for("The cluster[", supervisor)
