"""Credits by way of a real Redis and real Celery workers: what only they do when they hang, answer half, or lose a process."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from redis import Redis

from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.celery_tasks import CeleryTasks
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Credited, CreditingFailed
from credit_service.service_layer.patient_crediting import PatientCrediting
from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Process, Processes, prints
from demo.system import redis_command
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from service_runtime.failing.holds import Holds
from tests.foreign.redis.redis_faults import Relay, locked_against_credits
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


class CreditSide:
    """Redis, a worker, and the consumer's end of them."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        (port,) = free_ports(1)
        self.relay = Relay(port)
        redis_url, database_url = f"redis://127.0.0.1:{self.relay.port}/0", f"sqlite:///{folder}/credits.db"
        self.redis: Process = processes.add("redis", redis_command(port, folder), is_ready=prints("Ready to accept connections"))
        self.worker: Process = processes.add(
            "worker",
            [sys.executable, "-m", "credit_service.worker"],
            environment={"REDIS_URL": redis_url, "CREDIT_DATABASE_URL": database_url},
            is_ready=prints("credit worker ready: "),
        )
        self.engine = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
        self.ledger = Ledger(self.engine, World())
        self.database = folder / "credits.db"
        self.redis_client = Redis(port=port)
        self.tasks = CeleryTasks(create_celery(redis_url), redis_url)
        self.crediting = CeleryCrediting(self.tasks, World(), timeout_s=60)

    def credit(self, batch: list[Credit], *, timeout_s: float = 60, is_again: bool = False) -> list[CreditOutcome | None]:
        """One try, as patient as a slow machine needs it unless told otherwise."""
        deadline_s = time.monotonic() + timeout_s
        return self.crediting.credit(batch, is_again=is_again, is_given_up=lambda: time.monotonic() > deadline_s)

    def credit_patiently(self, batch: list[Credit]) -> list[Credited]:
        """As the consumer does, with short waits."""
        patient = PatientCrediting(CeleryCrediting(self.tasks, World(), timeout_s=2), Holds(now_s=time.monotonic), threads=1)
        return patient.credit(batch, ConsumeContext(MessageQueue("orders", "broker-a", 0)))

    def answers_kept(self) -> list[bytes]:
        """What Redis keeps of answers."""
        return list(self.redis_client.scan_iter("celery-task-meta-*"))

    @contextmanager
    def tasks_under_way(self, names: Sequence[str]) -> Iterator[list[Future[list[CreditOutcome | None]]]]:
        """A batch for each customer, credited patiently: one in each process of the worker, none of which ends before it."""
        waiting = ThreadPoolExecutor(len(names))
        with locked_against_credits(self.engine):
            futures = [waiting.submit(self.credit_patiently, a_batch(name)) for name in names]
            wait_until(lambda: int(self.redis_client.hlen("unacked")) == len(names))
            yield futures
        waiting.shutdown(wait=False)

    def close(self) -> None:
        self.relay.close()
        self.engine.dispose()
        self.tasks.close()
        self.redis_client.close()


@pytest.fixture
def credit_side(processes: Processes, tmp_path: Path) -> Iterator[CreditSide]:
    side = CreditSide(processes, tmp_path)
    side.redis.start()
    side.worker.start()
    yield side
    side.close()


def a_batch(customer: str) -> list[Credit]:
    return [
        Credit(order_id=str(uuid.uuid4()), customer=customer, amount_cents=250, message_id="m", transaction_id=None)
        for _ in range(32)
    ]


def points(side: CreditSide, customer: str) -> int:
    found = side.ledger.find_customer(customer, max_entries=1)
    return found.points if found else 0


def kill_the_process_at_work(side: CreditSide) -> None:
    """The one that has opened the database, where it waits for the lock."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for process in psutil.Process(side.worker.pid).children():
            if str(side.database) in (file.path for file in process.open_files()):
                process.kill()
                return
        time.sleep(0.05)


def test_a_task_that_ends_its_workers_process_is_answered_instead_of_going_round_for_ever(credit_side: CreditSide) -> None:
    with sqlite3.connect(credit_side.database, isolation_level=None) as lock:
        lock.execute("BEGIN IMMEDIATE")
        killer = threading.Thread(target=kill_the_process_at_work, args=(credit_side,))
        killer.start()
        with pytest.raises(CreditingFailed, match="WorkerLostError"):
            credit_side.credit(a_batch("ada"))
        killer.join()
        lock.execute("ROLLBACK")
    assert set(credit_side.credit_patiently(a_batch("ada"))) == {CreditOutcome.CREDITED}


def check_of_the_worker(side: CreditSide) -> str:
    command = [sys.executable, "-m", "credit_service.worker", "--check"]
    environment = {**os.environ, **side.worker.environment}
    checked = subprocess.run(command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=60)
    return checked.stdout


def test_a_worker_takes_tasks_again_after_a_redis_that_hung_while_all_its_tasks_ended(credit_side: CreditSide) -> None:
    with credit_side.tasks_under_way(["ada", "bob"]) as under_way:
        os.kill(credit_side.redis.pid, signal.SIGSTOP)
    wait_until(lambda: credit_side.worker.output().count("a task could not be acknowledged in Redis") == 2)
    os.kill(credit_side.redis.pid, signal.SIGCONT)
    for batch in under_way:
        assert set(batch.result(timeout=120)) <= {CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED}
    credit_side.credit_patiently(a_batch("cy"))
    assert [points(credit_side, name) for name in ("ada", "bob", "cy")] == [64, 64, 64]
    wait_until(lambda: "tasks, the last one" in check_of_the_worker(credit_side))


@pytest.mark.parametrize("follows", [True, None], ids=["cut", "silent"])
def test_answers_that_come_half_cost_no_credit_and_no_place(credit_side: CreditSide, follows: bool | None) -> None:
    credit_side.credit(a_batch("ada"))
    with credit_side.tasks_under_way(["ada", "bob"]) as under_way:
        credit_side.relay.harm = lambda answer: (answer[: len(answer) // 2], follows)
    time.sleep(3)
    credit_side.relay.harm = None
    for batch in under_way:
        assert set(batch.result(timeout=120)) <= {CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED}
    credit_side.credit_patiently(a_batch("cy"))
    assert [points(credit_side, name) for name in ("ada", "bob", "cy")] == [128, 64, 64]


def test_a_redis_that_forgets_the_tasks_under_way_costs_no_credit_and_no_place(credit_side: CreditSide) -> None:
    with credit_side.tasks_under_way(["ada", "bob"]) as under_way:
        credit_side.redis_client.flushall()
    for batch in under_way:
        batch.result(timeout=120)
    for name in ("cy", "di", "eve"):
        credit_side.credit_patiently(a_batch(name))
    assert [points(credit_side, name) for name in ("ada", "bob", "cy", "di", "eve")] == [64] * 5


def test_a_worker_whose_loop_hangs_starts_again_under_its_process_id_and_leaves_no_process_behind(
    credit_side: CreditSide,
) -> None:
    credit_side.credit(a_batch("ada"))
    before = psutil.Process(credit_side.worker.pid).children()
    os.kill(credit_side.worker.pid, signal.SIGALRM)
    wait_until(lambda: credit_side.worker.output().count("credit worker ready: ") == 2)
    assert not any(process.is_running() for process in before)
    credit_side.credit_patiently(a_batch("ada"))
    assert points(credit_side, "ada") == 128
    assert "its loop has not turned for 120 s" in credit_side.worker.output()


def test_the_worker_stops_on_sigterm_whether_redis_is_there_or_not(credit_side: CreditSide) -> None:
    for is_there in (True, False):
        if not is_there:
            credit_side.worker.start()
            credit_side.redis.kill()
        os.kill(credit_side.worker.pid, signal.SIGTERM)
        assert credit_side.worker.wait(timeout_s=30) == 0
