"""Tests the benchmark's load generator against a running broker: its counts agree with the broker's messages."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_ports
from demo.processes import Processes, ProcessFailed
from lab.benchmarks.side_by_side.brokers import SYNC, Side
from lab.benchmarks.side_by_side.generator import SOURCE, build, drive_grpc_client, find_go, generate
from lab.benchmarks.side_by_side.measure import measure
from lab.benchmarks.side_by_side.plan import Kind, Plan, State, generated_loads
from lab.benchmarks.side_by_side.probe import make_topic, visible_messages
from tests.conftest import BrokerProcess
from tests.foreign.clients.grpc.clients import has

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(find_go() is None, reason="go not found: apt-get install golang-go")]
SHORT = {"warm_up": "100ms", "measured": "300ms"}


@pytest.fixture(scope="module")
def _built() -> None:
    build()


@pytest.fixture
def load(_built: None, processes: Processes, broker: BrokerProcess) -> Callable[..., dict[str, Any]]:
    """Returns a function that runs the generator against the broker, in the given mode."""
    return lambda mode, **options: generate(processes, mode, [broker.address], **options)


def test_its_own_tests_pass(tmp_path: Path) -> None:
    go = find_go()
    assert go is not None
    tested = subprocess.run([go, "test", "."], cwd=SOURCE, capture_output=True, text=True, timeout=240)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("in_flight", [1, 32])
@pytest.mark.parametrize("mode", ["transactions", "sends"])
def test_all_that_the_broker_takes_becomes_visible(load: Callable[..., dict[str, Any]], mode: str, in_flight: int) -> None:
    printed = load(mode, in_flight=in_flight, **SHORT)
    assert printed["taken"] == printed["visible"] > 0
    assert printed["errors"] == 0


@pytest.mark.usefixtures("_built")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("side", [Side.OURS, Side.FLOOR])
def test_both_states_of_a_row_are_measured_beside_the_floor(tmp_path: Path, side: Side, state: State) -> None:
    loads = generated_loads([Kind.TRANSACTIONS], [SYNC], [1, 8], [state])
    plan = Plan(
        sides=[side],
        loads=loads,
        rounds=1,
        warm_up_s=1,
        steady_within_s=2,
        seconds=1,
        body_size=100,
        rate=1,
        backlog=1,
        pending=1,
        consumed=1,
    )
    samples = [sample for number, run in enumerate(plan.runs()) for sample in measure(plan, run, tmp_path / str(number))]
    assert [sample.result > 0 for sample in samples] == [True, True]
    assert {sample.dropped for sample in samples} == {0}
    assert all((sample.warm_up_s or 0) >= (2 if state is State.WARM else 1) for sample in samples)


def test_a_backlog_is_pulled_whole(load: Callable[..., dict[str, Any]]) -> None:
    load("fill", messages=3000, body=100)
    printed = load("pulls", messages=3000)
    assert (printed["items"], printed["missing"], printed["doubled"]) == (3000, 0, 0)


def test_a_listener_gets_every_transaction(load: Callable[..., dict[str, Any]]) -> None:
    printed = load("listener", rate=100, **SHORT)
    assert (printed["missing"], printed["doubled"], printed["errors"]) == (0, 0, 0)
    assert printed["items"] > 0


def test_pending_transactions_are_committed_when_the_broker_asks(load: Callable[..., dict[str, Any]]) -> None:
    load("halves", messages=300, body=100)
    printed = load("checks", messages=300)
    assert (printed["items"], printed["missing"], printed["doubled"]) == (300, 0, 0)
    assert printed["checks"] >= 300


@pytest.mark.usefixtures("_built")
def test_a_broker_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with Processes(tmp_path / "logs") as processes, pytest.raises(ProcessFailed, match=r"load: dial tcp .*connection refused"):
        generate(processes, "sends", ["127.0.0.1:1"])


@pytest.mark.skipif(not has("go"), reason="Apache's gRPC client needs Go 1.21 or newer")
def test_what_the_grpc_client_counts_is_what_the_broker_has(
    processes: Processes, start_broker: Callable[..., BrokerProcess]
) -> None:
    (grpc_port,) = free_ports(1)
    broker = start_broker({"grpcServerPort": str(grpc_port)})
    asyncio.run(make_topic(broker.address, "loaded", "TRANSACTION"))
    sent, received = (
        drive_grpc_client(processes, f"127.0.0.1:{grpc_port}", mode, topic="loaded", in_flight=4, **SHORT)
        for mode in ("transactions", "receives")
    )
    assert sent["taken"] == asyncio.run(visible_messages(broker.address, "loaded")) > 0
    assert received["taken"] > 0
    assert sent["errors"] == received["errors"] == 0
