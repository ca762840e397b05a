"""Tests that the keeper starts processes in order, restarts processes that exited, and keeps stopped ones down."""

import sys
import time
from types import SimpleNamespace
from typing import cast

import pytest

from demo.processes import Process, Processes, prints
from demo.system import System
from demo.up.keeper import Health, Keeper
from tests.waiting import wait_until

RUNS = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture(autouse=True)
def _starts_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.up.keeper._BEFORE_NEXT_START_S", 0.0)


def program(processes: Processes, name: str, source: str = RUNS) -> Process:
    return processes.add(name, [sys.executable, "-c", source], is_ready=prints("ready"))


def kept(broker: Process, *services: Process) -> Keeper:
    return Keeper(cast(System, SimpleNamespace(broker=broker, services=services)))


def test_services_wait_for_the_broker_and_one_that_dies_is_started_again(processes: Processes) -> None:
    broker, service = program(processes, "broker"), program(processes, "service")
    with kept(broker, service) as keeper:
        assert keeper.healths["service"] is Health.WAITING
        wait_until(lambda: keeper.is_all_ready)
        first = service.pid
        service.kill()
        wait_until(lambda: keeper.deaths_ms["service"] != [] and keeper.is_all_ready)
        assert service.pid != first
        assert keeper.pids == {"broker": broker.pid, "service": service.pid}


def test_what_is_kept_down_is_started_after_the_block(processes: Processes) -> None:
    broker = program(processes, "broker")
    with kept(broker) as keeper:
        wait_until(lambda: keeper.is_all_ready)
        with keeper.kept_down(broker):
            time.sleep(0.3)
            assert keeper.healths["broker"] is Health.KEPT_DOWN
            assert not broker.is_running
        wait_until(lambda: keeper.is_ready(broker))


def test_one_that_was_killed_on_purpose_has_a_death(processes: Processes) -> None:
    broker = program(processes, "broker")
    with kept(broker) as keeper:
        wait_until(lambda: keeper.is_all_ready)
        keeper.kill(broker)
        assert len(keeper.deaths_ms["broker"]) == 1
        wait_until(lambda: keeper.is_ready(broker))
        with keeper.kept_down(broker):
            assert len(keeper.deaths_ms["broker"]) == 2
        wait_until(lambda: keeper.is_ready(broker))
        assert len(keeper.deaths_ms["broker"]) == 2


def test_one_that_never_becomes_ready_is_given_up(processes: Processes) -> None:
    with kept(program(processes, "broker", "raise SystemExit(3)")) as keeper:
        wait_until(lambda: keeper.healths["broker"] is Health.FAILED)
        assert len(keeper.deaths_ms["broker"]) == 5
