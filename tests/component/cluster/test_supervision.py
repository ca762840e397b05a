"""A cluster's processes: started, killed, started again, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from demo.processes import Process
from tests.component.cluster.conftest import RunningCluster

PATIENCE_S = 60


def wait_for(text: str, supervisor: Process) -> None:
    """Waits until the supervisor has printed the text."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in supervisor.output():
        assert supervisor.is_running, supervisor.output()
        assert time.monotonic() < deadline, f"{text!r} is not in:\n{supervisor.output()}"
        time.sleep(0.1)


def family(supervisor: Process) -> list[psutil.Process]:
    """All processes below the supervisor: name server, brokers, and the brokers' helpers."""
    return psutil.Process(supervisor.pid).children(recursive=True)


def are_gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_each_line_names_the_process_that_it_comes_from(cluster: RunningCluster) -> None:
    lines = cluster.start(2).output().splitlines()
    begins = ("namesrv  | The Name Server boot", "broker-a | The broker[broker-a,", "broker-b | The broker[broker-b,")
    for begin in (*begins, "cluster  | The cluster[DefaultCluster, broker-a "):
        assert [line for line in lines if line.startswith(begin)], begin
    assert f"name server is {cluster.namesrv_addr}" in lines[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_of_them_cleanly(cluster: RunningCluster, number: signal.Signals) -> None:
    supervisor = cluster.start(2)
    children = family(supervisor)
    assert len(children) >= 3
    os.kill(supervisor.pid, number)
    assert supervisor.wait(PATIENCE_S) == 0
    assert are_gone(children)
    for name in ("broker-a", "broker-b"):
        assert not (cluster.folder / name / "abort").exists(), f"{name} was not stopped cleanly"


def test_a_supervisor_that_is_killed_leaves_no_orphan(cluster: RunningCluster) -> None:
    supervisor = cluster.start(2)
    children = family(supervisor)
    stopped = cluster.child(supervisor, "broker-b")
    stopped.suspend()  # also a child that hangs
    supervisor.kill()
    assert are_gone(children)
    again = cluster.start(2)
    assert len(family(again)) >= 3


@pytest.mark.parametrize("name", ["namesrv", "broker-b"])
def test_what_dies_is_started_again(cluster: RunningCluster, name: str) -> None:
    supervisor = cluster.start(2)
    killed = cluster.child(supervisor, name)
    killed.kill()
    wait_for(f"{name} was ended by SIGKILL; it is started again in 0.5 s (1 of 10)", supervisor)
    deadline = time.monotonic() + PATIENCE_S
    while sum(f"{name:8} | The " in line for line in supervisor.output().splitlines()) < 2:
        assert time.monotonic() < deadline, supervisor.output()
        time.sleep(0.1)
    assert cluster.child(supervisor, name).pid != killed.pid


def test_a_name_server_that_cannot_start_ends_the_start(cluster: RunningCluster) -> None:
    cluster.start(1)
    other = RunningCluster(cluster.processes, cluster.folder.parent / "other")
    other.folder.parent.mkdir()
    other.settings["namesrvListenPort"] = cluster.settings["namesrvListenPort"]
    supervisor = other.add(1)
    supervisor.spawn()
    assert supervisor.wait(PATIENCE_S) == 1
    assert "The cluster cannot start: the name server cannot start on" in supervisor.output()


def test_two_supervisors_do_not_share_a_folder(cluster: RunningCluster) -> None:
    cluster.start(1)
    second = cluster.add(1)
    second.spawn()
    assert second.wait(PATIENCE_S) == 1
    assert "another cluster runs on" in second.output()


def test_a_single_broker_does_not_begin_in_a_cluster_s_folder(cluster: RunningCluster) -> None:
    cluster.start(1).stop()
    command = [sys.executable, "-m", "rocketmq_broker", "-c", str(cluster.conf)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert told.returncode == 1
    assert "is the folder of a cluster: start it with --brokers" in told.stderr


def test_a_broker_that_cannot_start_is_tried_again_and_the_others_go_on(cluster: RunningCluster) -> None:
    (cluster.folder / "broker-b" / "config").mkdir(parents=True)
    (cluster.folder / "broker-b" / "lock").mkdir()  # no file that could be locked
    supervisor = cluster.add(2)
    supervisor.spawn()
    wait_for("broker-b ended with exit status 1; it is started again in 1 s (2 of 10)", supervisor)
    wait_for("broker-a | The broker[broker-a", supervisor)
    assert "broker-b | The broker cannot start" in supervisor.output()
    (cluster.folder / "broker-b" / "lock").rmdir()
    wait_for("The cluster[", supervisor)
