"""Tests a broker under Windows: sockets, Ctrl-C, kill and recovery, the store's lock, and the same files as on Linux."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT
from tests.conftest import BrokerProcess
from tests.foreign.apache.cluster import apache_rocketmq
from tests.foreign.windows.conftest import PROGRAMS, Windows, conf_of, windows_broker, windows_path

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
CLIENT: Final = PROGRAMS / "client_program.py"
Client = Callable[..., list[str]]
"""Runs the client program. Returns the texts that it printed."""


@pytest.fixture
def on_windows(windows: Windows) -> Client:
    return lambda *arguments: windows.run(CLIENT, *arguments, cwd=PROJECT_ROOT, timeout_s=120).splitlines()[-1].split()


def run_client(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, CLIENT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment})


def on_linux(*arguments: str) -> list[str]:
    done = run_client(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def texts(first: int, end: int) -> list[str]:
    return [f"order-{number}" for number in range(first, end)]


def new_ports() -> tuple[tuple[int, int], str]:
    """Returns the ports of a broker and its name server, and the name server's address.

    The VIP channel uses the broker's port minus 2.
    """
    port, name_server = free_ports(2)
    return (port, name_server), f"127.0.0.1:{name_server}"


def test_it_serves_linux_stops_by_ctrl_c_and_continues(windows: Windows, on_windows: Client, tmp_path: Path) -> None:
    ports, name_server = new_ports()
    conf = conf_of(tmp_path / "store", "broker", ports=ports)
    with windows_broker(windows, conf) as broker:
        on_linux(name_server, "shops", "send", *texts(0, 5))
        on_windows(name_server, "shops", "send", *texts(5, 10))
        assert on_linux(name_server, "credits", "consume", "10") == sorted(texts(0, 10))
        assert broker.interrupt() == 0
    assert not (tmp_path / "store" / "abort").exists()
    with windows_broker(windows, conf) as broker:
        assert on_windows(name_server, "others", "consume", "10") == sorted(texts(0, 10))
        assert broker.interrupt() == 0
    assert "did not stop cleanly" not in "".join(broker.lines)


def test_what_was_acknowledged_survives_a_kill(windows: Windows, tmp_path: Path) -> None:
    ports, name_server = new_ports()
    conf = conf_of(tmp_path / "store", "broker", ports=ports)
    for round_ in range(2):
        with windows_broker(windows, conf) as broker:
            on_linux(name_server, "shops", "send", *texts(5 * round_, 5 * round_ + 5))
            broker.kill()
        assert (tmp_path / "store" / "abort").exists()
    with windows_broker(windows, conf) as broker:
        assert on_linux(name_server, "credits", "consume", "10") == sorted(texts(0, 10))
        assert broker.interrupt() == 0
    assert "recovery: the last broker did not stop cleanly" in "".join(broker.lines)


def test_a_second_broker_on_the_store_is_refused_in_one_line(windows: Windows, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with windows_broker(windows, conf_of(store, "first")):
        second = windows.start("-m", "rocketmq_broker", "-c", conf_of(store, "second"), cwd=tmp_path)
        told, _ = second.communicate(timeout=120)
    assert told.splitlines() == [f"The broker cannot start: the store {windows_path(store)} is in use by another broker"]
    assert second.returncode == 1


def test_a_store_of_windows_is_one_of_linux_and_the_other_way_round(
    windows: Windows, on_windows: Client, start_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    ports, name_server = new_ports()
    conf = conf_of(store, "broker", ports=ports)
    with windows_broker(windows, conf) as broker:
        on_linux(name_server, "shops", "send", *texts(0, 5))
        broker.kill()
    of_the_store = {"mapedFileSizeCommitLog": str(1 << 30), "storePathRootDir": str(store)}
    on_this_system = start_broker({"listenPort": str(ports[0]), "namesrvListenPort": str(ports[1]), **of_the_store})
    on_windows(name_server, "shops", "send", *texts(5, 10))
    assert on_windows(name_server, "credits", "consume", "10") == sorted(texts(0, 10))
    on_this_system.process.stop()
    with windows_broker(windows, conf) as broker:
        assert on_linux(name_server, "others", "consume", "10") == sorted(texts(0, 10))
        assert broker.interrupt() == 0


@pytest.mark.java
def test_apaches_broker_continues_with_a_store_of_windows(windows: Windows, tmp_path: Path) -> None:
    store = tmp_path / "store"
    ports, name_server = new_ports()
    with windows_broker(windows, conf_of(store, "broker", ports=ports)) as broker:
        on_linux(name_server, "shops", "send", *texts(0, 5))
        assert broker.interrupt() == 0
    with apache_rocketmq(tmp_path / "apache", settings={"STORE": str(store)}) as name_server:
        on_linux(name_server, "shops", "send", *texts(5, 10))
        assert on_linux(name_server, "credits", "consume", "10") == sorted(texts(0, 10))


def test_topics_that_windows_cannot_hold_apart_are_refused_in_one_sentence(windows: Windows, tmp_path: Path) -> None:
    ports, name_server = new_ports()
    reasons = {
        "Orders": "topic Orders cannot be stored beside topic orders: the names of their folders differ only in case, "
        "which this file system ignores",
        "CON": "topic CON cannot be stored: this system does not accept a folder of this name",
    }
    with windows_broker(windows, conf_of(tmp_path / "store", "broker", ports=ports)) as broker:
        on_linux(name_server, "shops", "send", *texts(0, 1))
        for topic, reason in reasons.items():
            refused = run_client(name_server, "shops", "send", "refused", TOPIC=topic)
            assert refused.returncode == 1
            assert reason in refused.stderr.splitlines()[-1]
        assert on_linux(name_server, "credits", "consume", "1") == texts(0, 1)
        assert broker.interrupt() == 0
    assert sorted(os.listdir(tmp_path / "store" / "consumequeue")) == [
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "orders",
    ]


def test_the_first_minute_in_powershell_is_as_the_page_says(windows: Windows, tmp_path: Path) -> None:
    """Every command in the PowerShell block of broker/README.md works with free ports. Only pip is not run."""
    page = (PROJECT_ROOT / "broker" / "README.md").read_text()
    block = page.partition("in PowerShell")[2].split("\n\n")[1]
    install, start, *others = [line.partition("#")[0].split() for line in block.splitlines()]
    assert (install, start) == (["pip", "install", ".\\broker"], ["rocketmq-broker"])
    ports, name_server = new_ports()
    with windows_broker(windows, conf_of(tmp_path / "store", "broker", ports=ports)) as broker:
        for command in others:
            assert windows.run(PROGRAMS / "command.py", *command, cwd=tmp_path, timeout_s=120, NAMESRV_ADDR=name_server)
        assert broker.interrupt() == 0


def test_what_windows_cannot_do_is_refused_in_one_line(windows: Windows, tmp_path: Path) -> None:
    refused = windows.start("-m", "rocketmq_broker", "--brokers", "2", cwd=tmp_path)
    told, _ = refused.communicate(timeout=120)
    assert refused.returncode == 2
    reason = "--brokers requires Linux or macOS: Windows has no signal that stops a broker"
    assert told.splitlines() == [f"rocketmq-broker: {reason}. See rocketmq-broker --help"]
