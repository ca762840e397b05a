"""Tests of the error line and the exit code of processes that cannot start. They call main() in the test's process."""

import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from credit_service.entrypoints.process import SERVICE as CREDITS
from credit_service.worker.process import main as work
from inventory_service.entrypoints.process import SERVICE as INVENTORY
from order_service.entrypoints.process import SERVICE as ORDERS
from service_runtime.starting.start import stop_on_signals, until_next_signal, wait_for_stop

MAINS: dict[str, Callable[[], int]] = {
    **{service.program: service.main for service in (ORDERS, CREDITS, INVENTORY)},
    "credit_service.worker": work,
}
HTTP_SERVICES = ["order_service", "credit_service", "inventory_service"]

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(run_main: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """Yields a function that runs a program's main() with arguments and variables. It returns the exit code and the last line."""
    level = logging.getLogger("alembic").level
    monkeypatch.setenv("ORDER_DATABASE_URL", f"sqlite:///{tmp_path}/orders.db")
    monkeypatch.setenv("CREDIT_DATABASE_URL", f"sqlite:///{tmp_path}/credits.db")
    monkeypatch.setenv("INVENTORY_DATABASE_URL", f"sqlite:///{tmp_path}/inventory.db")
    for name in ("ORDER", "CREDIT", "INVENTORY"):
        monkeypatch.setenv(f"{name}_DATABASE_START_TIMEOUT_S", "0.1")

    def main(module: str, *arguments: str, **variables: str) -> tuple[int, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        status, shown = run_main(MAINS[module], module, *arguments)
        assert "Traceback" not in shown
        return status, shown.strip().splitlines()[-1]

    yield main
    logging.getLogger("alembic").setLevel(level)


@pytest.mark.parametrize(
    ("module", "variable", "value"),
    [
        ("order_service", "ORDER_DATABASE_URL", "postgresql://ann:hunter@2@db/orders"),
        ("credit_service", "REDIS_URL", "http://:hunter2@localhost"),
        ("credit_service.worker", "REDIS_URL", "redis://:hunter2@localhost:port"),
        ("credit_service.worker", "CREDIT_WORKER_PROCESSES", "none"),
    ],
)
def test_a_wrong_setting_is_named_and_ends_with_2(run: Run, module: str, variable: str, value: str) -> None:
    status, said = run(module, **{variable: value})
    assert (status, said[: len(module) + len(variable) + 4]) == (2, f"{module}: {variable}: ")
    assert "hunter" not in said


@pytest.mark.parametrize("module", MAINS)
def test_a_flag_that_does_not_exist_ends_with_2(run: Run, module: str) -> None:
    status, said = run(module, "--colour=red")
    assert (status, said) == (2, f"python -m {module}: error: unrecognized arguments: --colour=red")


@pytest.mark.parametrize(
    ("module", "variable", "value", "words"),
    [
        ("order_service", "ORDER_HTTP_HOST", "no-such-host.invalid", "cannot listen on no-such-host.invalid:"),
        ("credit_service", "CREDIT_HTTP_HOST", "2001:db8::7", "cannot listen on 2001:db8::7:"),
        ("order_service", "ORDER_DATABASE_URL", "sqlite:////proc/none/x.db", "cannot create the folder of the database"),
        ("credit_service.worker", "CREDIT_DATABASE_URL", "sqlite:////dev/null/x.db", "the folder of the database /dev/null/x.db"),
        ("credit_service", "CREDIT_DATABASE_URL", f"sqlite:///{__file__}", "file is not a database"),
        ("order_service", "ORDER_DATABASE_URL", "sqlite:////proc", "unable to open database file"),
        (
            "order_service",
            "ORDER_DATABASE_URL",
            "postgresql://ann@127.0.0.1:1/x?colour=red",
            'invalid connection option "colour"',
        ),
        ("credit_service", "CREDIT_DATABASE_URL", "postgresql://ann:hunter2@127.0.0.1:1/x", "ann:***@127.0.0.1:1/x after 0.1 s"),
        ("credit_service.worker", "CREDIT_DATABASE_URL", "postgresql://no-such-host.invalid/x", "failed to resolve host"),
    ],
)
def test_a_start_that_cannot_work_is_said_in_one_line_and_ends_with_1(
    run: Run, module: str, variable: str, value: str, words: str
) -> None:
    status, said = run(module, **{variable: value})
    assert (status, said[: len(module) + 2]) == (1, f"{module}: ")
    assert words in said
    assert "hunter" not in said


@pytest.mark.parametrize(("module", "variable"), [("order_service", "ORDER_HTTP_PORT"), ("credit_service", "CREDIT_HTTP_PORT")])
def test_a_port_that_is_taken_ends_with_1(run: Run, module: str, variable: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(module, **{variable: str(port)}) == (
            1, f"{module}: cannot listen on 127.0.0.1:{port}: Address already in use",
        )  # fmt: skip


@pytest.mark.parametrize("module", HTTP_SERVICES)
def test_migrating_says_what_it_did_and_serving_need_not_do_it(run: Run, module: str) -> None:
    name = module.partition("_")[0]
    status, said = run(module, **{f"{name.upper()}_MIGRATE_ON_START": "false"})
    assert (status, said.partition("required: ")[2]) == (1, f"run python -m {module} migrate")
    (done, first), (done_again, second) = (run(module, "migrate") for _ in range(2))
    assert (done, done_again) == (0, 0)
    assert first.startswith("database sqlite:///")
    assert ": migrated from no tables to revision 000" in first
    assert re.search(r"the tables are already at revision \d{4}$", second)


def test_a_secret_that_cannot_be_read_is_said_in_one_line_and_ends_with_1(run: Run) -> None:
    account = {"ROCKETMQ_ACCESS_KEY": "order-service", "ROCKETMQ_SECRET_KEY_FILE": "/no/such/secret"}
    status, said = run("order_service", **account, ORDER_HTTP_PORT="0")
    assert status == 1
    assert said.startswith(
        "order_service: cannot join the producer group: ROCKETMQ_SECRET_KEY_FILE=/no/such/secret: No such file"
    )


def test_a_history_is_adopted_by_a_command_that_asks_for_a_reason(run: Run) -> None:
    adopt, reason = ("order_service", "adopt-history"), ("--order-adoption-reason", "the other one is gone")
    status, said = run(*adopt, *reason)
    assert (status, said.endswith("run python -m order_service migrate")) == (1, True)
    run("order_service", "migrate")
    assert run(*adopt) == (2, "order_service adopt-history: ORDER_ADOPTION_REASON: Field required")
    status, said = run(*adopt, *reason)
    assert (status, "now decides all half messages until 20" in said) == (0, True)


@pytest.mark.parametrize("module", HTTP_SERVICES)
def test_a_migration_that_cannot_be_done_and_one_that_is_asked_wrongly_end_with_1_and_2(run: Run, module: str) -> None:
    variable = f"{module.partition('_')[0].upper()}_DATABASE_URL"
    status, said = run(module, "migrate", **{variable: "postgresql://ann:hunter2@127.0.0.1:1/books"})
    assert (status, said.startswith(f"{module} migrate: cannot use the database")) == (1, True)
    status, said = run(module, "migrate", **{variable: "books"})
    assert (status, said.startswith(f"{module} migrate: {variable}: ")) == (2, True)
    assert run(module, "migrate", "--colour=red")[0] == 2
    assert run(module, "migrate", "--help")[0] == 0
    assert run(module, "migrat") == (2, f"python -m {module}: error: unrecognized arguments: migrat")


@pytest.mark.parametrize("first", HTTP_SERVICES)
def test_two_services_on_one_database_are_refused(run: Run, first: str, tmp_path: Path) -> None:
    urls = [f"{service.partition('_')[0].upper()}_DATABASE_URL" for service in HTTP_SERVICES]
    assert run(first, "migrate", **dict.fromkeys(urls, f"sqlite:///{tmp_path}/one.db"))[0] == 0
    for second in sorted({*HTTP_SERVICES} - {first}):
        others = [second, *(["credit_service.worker"] if second == "credit_service" else [])]
        for refused in [*(run(module) for module in others), run(second, "migrate")]:
            assert refused[0] == 1
            assert refused[1].endswith(f"contains the tables of {first}; {second} needs a separate database")


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("signals_restored")
def test_a_signal_that_another_thread_receives_stops_the_process() -> None:
    stopping = stop_on_signals()
    # The signal interrupts this thread only. The main thread waits by then.
    receiver = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
    receiver.start()
    wait_for_stop(stopping)
    receiver.join()


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("signals_restored")
def test_a_second_signal_ends_the_drain_and_a_third_has_no_effect() -> None:
    sender = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    sender.start()
    until_next_signal(lambda: time.sleep(3_600))
    sender.join()
    signal.raise_signal(signal.SIGTERM)
