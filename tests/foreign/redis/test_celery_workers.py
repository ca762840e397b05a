"""Tests credits through a real Redis and real Celery workers, which hang, lose tasks or lose a process."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from redis import Redis, RedisError

from credit_service.adapters.drain_task import DRAIN_TASK, QUEUE, TaskSender, create_celery
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.workers import Workers, redis_client
from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Process, Processes, prints
from demo.system import redis_command
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from service_runtime.inbox.bell_thread import BellThread
from tests.component.credit_service.conftest import ORDER, a_message, orders, points
from tests.foreign.redis.redis_faults import Relay, locked_against_credits
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

WORKER = ("-m", "credit_service.worker")
WITH_A_BUG = ("-m", "tests.foreign.redis.worker_with_a_bug")
PROCESSES = 2


class CreditSide:
    """Redis, a worker, and the service's inbox with the bell that sends tasks."""

    def __init__(self, processes: Processes, folder: Path, program: tuple[str, ...] = WORKER, **environment: str) -> None:
        (port,) = free_ports(1)
        self.relay = Relay(port)
        self.redis_url, database_url = f"redis://127.0.0.1:{self.relay.port}/0", f"sqlite:///{folder}/credits.db"
        self.redis: Process = processes.add("redis", redis_command(port, folder), is_ready=prints("Ready to accept connections"))
        self.worker: Process = processes.add(
            "worker",
            [sys.executable, *program],
            environment={
                "REDIS_URL": self.redis_url, "CREDIT_DATABASE_URL": database_url, "CREDIT_WORKER_NAME": "one", **environment,
            },
            is_ready=prints("credit worker ready: "),
        )  # fmt: skip
        self.engine = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
        self.ledger = Ledger(self.engine, World())
        self.redis_client = Redis(port=port)
        self.workers = Workers(redis_client(f"redis://127.0.0.1:{port}/0", 5))
        self.tasks = TaskSender(create_celery(self.redis_url), redis_client(self.redis_url, 2), self.ledger.inbox)
        self.bell = BellThread("tasks", self.tasks.send_if_due)
        self.stored = 0

    def store(self, count: int = 10) -> None:
        """Stores orders as the consumer does. Each order is worth one point."""
        self.ledger.store(orders(count, first=self.stored))
        self.stored += count
        self.bell.ring()

    def store_poison(self) -> None:
        body = ORDER | {"order_id": "poison", "customer": "mallory"}
        self.ledger.store([a_message(json.dumps(body).encode(), 10**6)])
        self.bell.ring()

    @contextmanager
    def orders_coming(self) -> Iterator[None]:
        """Stores orders continuously while the block runs."""
        over = threading.Event()

        def keep_storing() -> None:
            while not over.wait(0.1):
                self.store()

        customer = threading.Thread(target=keep_storing)
        customer.start()
        try:
            yield
        finally:
            over.set()
            customer.join()

    def is_all_credited(self) -> bool:
        return points(self.ledger) == self.stored

    def check(self) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, *WORKER, "--check"]
        environment = {**os.environ, **self.worker.environment}
        return subprocess.run(command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=60)

    def close(self) -> None:
        self.bell.stop()
        self.tasks.redis.close()
        self.tasks.app.close()
        self.workers.redis.close()
        self.relay.close()
        self.engine.dispose()
        self.redis_client.close()


Start = Callable[..., CreditSide]


@pytest.fixture
def start(processes: Processes, tmp_path: Path) -> Iterator[Start]:
    started: list[CreditSide] = []

    def start(program: tuple[str, ...] = WORKER, *, has_worker: bool = True, **environment: str) -> CreditSide:
        side = CreditSide(processes, tmp_path, program, **environment)
        started.append(side)
        side.redis.start()
        if has_worker:
            side.worker.start()
        side.bell.start()
        return side

    yield start
    for side in started:
        side.close()


@pytest.mark.parametrize("bug", ["exit", "kill", "hang"])
def test_an_order_that_ends_its_process_is_parked_and_the_others_are_credited(start: Start, bug: str) -> None:
    side = start(WITH_A_BUG, BUG=bug, TIME_LIMIT_S="2", CREDIT_MAX_TRIES="1")
    side.store(100)
    side.store_poison()
    side.store(100)
    wait_until(side.is_all_credited)
    with side.orders_coming():
        wait_until(lambda: side.ledger.inbox.state().parked == 1, within_s=300)
    wait_until(side.is_all_credited)
    (parked,) = side.ledger.inbox.parked()
    assert b"mallory" in parked.body
    assert parked.last_error == "ProcessEnded: the process ended while it processed this message"
    assert side.ledger.find_order("poison") == ()


def hang(side: CreditSide) -> None:
    os.kill(side.redis.pid, signal.SIGSTOP)
    stored = side.stored
    wait_until(lambda: side.stored > stored + 80)
    os.kill(side.redis.pid, signal.SIGCONT)


def forget(side: CreditSide) -> None:
    for _ in range(20):
        stored = side.stored
        side.redis_client.flushall()
        wait_until(lambda stored=stored: side.stored > stored)  # type: ignore[misc]


def read_only(side: CreditSide) -> None:
    (port,) = free_ports(1)
    side.redis_client.replicaof("127.0.0.1", port)
    stored = side.stored
    wait_until(lambda: side.stored > stored + 50)
    side.redis_client.replicaof("NO", "ONE")


def restart(side: CreditSide) -> None:
    side.redis.kill()
    stored = side.stored
    wait_until(lambda: side.stored > stored + 50)
    side.redis.start()


def disconnect(side: CreditSide) -> None:
    for _ in range(5):
        with suppress(RedisError):
            side.redis_client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        stored = side.stored
        wait_until(lambda stored=stored: side.stored > stored)  # type: ignore[misc]


def halve(follows: bool | None) -> Callable[[CreditSide], None]:
    def harm(side: CreditSide) -> None:
        side.relay.harm = lambda answer: (answer[: len(answer) // 2], follows)
        stored = side.stored
        wait_until(lambda: side.stored > stored + 50)
        side.relay.harm = None

    return harm


FAULTS: dict[str, Callable[[CreditSide], None]] = {
    "hangs": hang,
    "forgets": forget,
    "is-read-only": read_only,
    "restarts": restart,
    "disconnects": disconnect,
    "answers-half-and-cuts": halve(True),
    "answers-half-and-is-silent": halve(None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_redis_while_orders_come_costs_no_credit_and_heals_soon(start: Start, fault: str) -> None:
    side = start()
    with side.orders_coming():
        wait_until(lambda: points(side.ledger) > 20)
        FAULTS[fault](side)
    wait_until(side.is_all_credited, within_s=30)
    assert side.ledger.inbox.state().waiting == 0
    side.store()
    wait_until(side.is_all_credited, within_s=30)


def test_a_worker_that_is_killed_with_its_processes_loses_nothing(start: Start) -> None:
    side = start()
    with side.orders_coming():
        for _ in range(3):
            before = points(side.ledger)
            wait_until(lambda before=before: points(side.ledger) > before)  # type: ignore[misc]
            family = [*psutil.Process(side.worker.pid).children(), psutil.Process(side.worker.pid)]
            for process in reversed(family):
                process.kill()
            side.worker.kill()
            side.worker.start()
    wait_until(side.is_all_credited)


def test_a_process_of_the_pool_that_is_killed_at_work_loses_nothing(start: Start) -> None:
    side = start()
    side.store()
    wait_until(side.is_all_credited)
    with side.orders_coming():
        for _ in range(5):
            psutil.Process(side.worker.pid).children()[0].kill()
            before = points(side.ledger)
            wait_until(lambda before=before: points(side.ledger) > before)  # type: ignore[misc]
    wait_until(side.is_all_credited)
    assert side.ledger.inbox.state().parked == 0


def test_without_a_worker_one_task_waits_and_the_check_says_that_there_is_none(start: Start) -> None:
    side = start(has_worker=False)
    for _ in range(50):
        side.store()
        assert int(side.redis_client.llen(QUEUE)) <= 1
    wait_until(lambda: int(side.redis_client.llen(QUEUE)) == 1)
    assert side.workers.living() == []
    checked = side.check()
    assert (checked.returncode, "no connection of a worker named one" in checked.stderr) == (1, True)
    side.worker.start()
    wait_until(side.is_all_credited)
    wait_until(lambda: [worker.name for worker in side.workers.living()] == ["one"])
    assert side.check().returncode == 0


def test_a_worker_that_lost_redis_fails_its_check_and_is_seen_again_when_redis_is_back(start: Start) -> None:
    side = start()
    wait_until(lambda: side.check().returncode == 0)
    side.redis.kill()
    checked = side.check()
    assert (checked.returncode, "Redis does not answer" in checked.stderr) == (1, True)
    assert "Traceback" not in checked.stderr
    side.redis.start()
    wait_until(lambda: [worker.name for worker in side.workers.living()] == ["one"])
    assert side.check().returncode == 0


def test_a_stopped_worker_is_seen_before_the_first_order(start: Start) -> None:
    side = start()
    wait_until(lambda: [worker.takes_tasks for worker in side.workers.living()] == [True])
    os.kill(side.worker.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: [worker.takes_tasks for worker in side.workers.living()] == [False])
        checked = side.check()
        assert (checked.returncode, "has asked for no task" in checked.stderr) == (1, True)
    finally:
        os.kill(side.worker.pid, signal.SIGCONT)
    wait_until(lambda: [worker.takes_tasks for worker in side.workers.living()] == [True])


def test_a_worker_holds_no_more_tasks_than_its_processes(start: Start) -> None:
    """A worker reserves at most one task for each of its processes. Further tasks stay in Redis.

    If the worker were killed, tasks in its memory would be lost, and no other worker could run them.
    """
    side = start()
    side.store()
    wait_until(side.is_all_credited)
    side.bell.stop()
    wait_until(lambda: int(side.redis_client.llen(QUEUE)) == 0)
    with locked_against_credits(side.engine):
        app = create_celery(side.redis_url)
        for _ in range(10):
            app.send_task(DRAIN_TASK)
        wait_until(lambda: any(worker.idle_s >= 3 for worker in side.workers.living()))
        waiting = int(side.redis_client.llen(QUEUE))
        app.close()
    assert 10 - PROCESSES <= waiting < 10
    wait_until(lambda: int(side.redis_client.llen(QUEUE)) == 0)


def test_tasks_of_an_older_consumer_and_strange_ones_do_not_disturb_a_worker(start: Start) -> None:
    side = start(has_worker=False)
    old = create_celery(side.redis_url)
    old.send_task("credit_service.credit_orders", args=[[{"order_id": "1"}]], queue="credits")
    old.send_task("credit_service.credit_orders", args=[[{"order_id": "1"}]])
    old.send_task(DRAIN_TASK, kwargs={"of_a_newer_version": 1})
    old.close()
    side.worker.start()
    side.store()
    wait_until(side.is_all_credited)
    assert int(side.redis_client.llen("credits")) == 1


def test_a_database_that_is_locked_for_long_costs_time_and_nothing_else(start: Start) -> None:
    side = start()
    side.store()
    wait_until(side.is_all_credited)
    with locked_against_credits(side.engine):
        app = create_celery(side.redis_url)
        app.send_task(DRAIN_TASK)
        wait_until(lambda: "database is locked" in side.worker.output())
        app.close()
    side.store()
    wait_until(side.is_all_credited, within_s=30)
    assert side.ledger.inbox.state().parked == 0


def test_the_worker_stops_on_sigterm_whether_redis_is_there_or_not(start: Start) -> None:
    side = start()
    for is_there in (True, False):
        if not is_there:
            side.worker.start()
            side.redis.kill()
        os.kill(side.worker.pid, signal.SIGTERM)
        assert side.worker.wait(timeout_s=30) == 0
