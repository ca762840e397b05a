"""Fixtures that run processes on free ports, with data and logs in `tmp_path`. The logs are shown if a test fails."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

from demo.ports import free_ports
from demo.processes import Process, Processes
from demo.system import QUICK_CHECKS, System, add_broker
from service_runtime.starting.start import exempt_loopback_from_proxies
from tests import examples
from tests.played_worlds import pytest_terminal_summary
from tests.side_by_side import pytest_xdist_make_scheduler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["examples", "pytest_terminal_summary", "pytest_xdist_make_scheduler"]

# A shell starts what it puts in the background with SIGINT ignored, and children would inherit that: Ctrl-C could not be tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A company's proxy is for pip: what tests and their processes ask listens on this machine. NO_PROXY does not suffice for
# ALL_PROXY: httpx refuses a SOCKS proxy before it looks at the address.
exempt_loopback_from_proxies(os.environ)
for name in ("ALL_PROXY", "all_proxy"):
    os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disables the garbage collector while tests are collected, because modules and tests are kept until the end anyway."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_NO_PARAMETERS = SimpleNamespace(params={})

FOREIGN: Final = Path(__file__).with_name("foreign")
PROCESSES = pytest.StashKey[Processes]()
"""The processes of a test: their logs are shown when it fails."""


@pytest.fixture
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Processes]:
    """Yields a process manager, which stops its processes when the test ends."""
    with Processes(tmp_path / "logs") as running:
        request.node.stash[PROCESSES] = running
        yield running


@pytest.fixture
def system(processes: Processes, tmp_path: Path) -> Iterator[System]:
    """Yields a system of broker, services and Redis with frequent check-backs. It has not been started."""
    system = System(processes, tmp_path)
    yield system
    system.begin_to_stop()


class BrokerProcess:
    """A broker with a name server at `namesrv_addr`. Its store survives a restart."""

    def __init__(self, process: Process, namesrv_port: int, port: int, home: Path) -> None:
        self.process = process
        self.namesrv_addr = f"127.0.0.1:{namesrv_port}"
        self.address = f"127.0.0.1:{port}"
        self.store = home / "store"


@pytest.fixture
def start_broker(processes: Processes, tmp_path: Path) -> Callable[..., BrokerProcess]:
    """Returns a function that starts a broker with frequent check-backs and the given settings. It can be called repeatedly."""
    started: list[BrokerProcess] = []

    def start(settings: Mapping[str, str] | None = None) -> BrokerProcess:
        name = f"broker-{chr(ord('a') + len(started))}"
        namesrv_port, port = free_ports(2)
        ports = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port)}
        process = add_broker(
            processes, tmp_path / name, {"brokerName": name, **QUICK_CHECKS, **ports, **(settings or {})}, name=name
        )
        process.start()
        started.append(BrokerProcess(process, namesrv_port, port, tmp_path / name))
        return started[-1]

    return start


@pytest.fixture
def broker(start_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """Returns a running broker with frequent check-backs."""
    return start_broker()


@pytest.fixture(scope="session")
def _java_and_maven() -> None:
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found: apt-get install openjdk-17-jdk-headless maven")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yields the Spark session of this process. A process can have only one."""
    if shutil.which("java") is None:
        pytest.skip("no java on the PATH: apt-get install openjdk-17-jre-headless")
    from pipelines.spark.session import spark_session

    with spark_session("local[1]", is_small=True) as session:
        yield session


@pytest.fixture(scope="session")
def docker() -> str:
    """Returns the path of the docker program. Skips the test if no Docker engine is running."""
    program = shutil.which("docker")
    if program is None:
        pytest.skip("no docker program: apt-get install docker.io docker-compose")
    if subprocess.run([program, "info"], capture_output=True, timeout=60).returncode:
        pytest.skip("no Docker engine answers: start dockerd")
    return program


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds the marks foreign and postgresql before -m selects tests. Tests marked `java` are skipped without Java and Maven."""
    for item in items:
        if item.path.is_relative_to(FOREIGN):
            item.add_marker("foreign")
        if "postgresql" in getattr(item, "callspec", _NO_PARAMETERS).params.values():
            item.add_marker("postgresql")
        if item.get_closest_marker("java") and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "_java_and_maven")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Shows the logs of a failed test's processes."""
    report = yield
    running = item.stash.get(PROCESSES, None)
    if report.failed and running is not None:
        report.sections += [(f"log of {name}", log) for name, log in running.logs().items()]
    return report
