"""Credits by way of a real Redis and real Celery workers, which may go away at any time."""

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.order_listener import CreditingUnavailable
from demo.ports import free_ports
from demo.processes import Process, Processes, prints
from demo.system import redis_command
from service_runtime.database import open_database

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


class CreditSide:
    """Redis, a worker, and the consumer's end of them."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        (port,) = free_ports(1)
        redis_url, database_url = f"redis://127.0.0.1:{port}/0", f"sqlite:///{folder}/credits.db"
        self.redis: Process = processes.add("redis", redis_command(port, folder), is_ready=prints("Ready to accept connections"))
        self.worker: Process = processes.add(
            "worker",
            [sys.executable, "-m", "credit_service.worker"],
            environment={"REDIS_URL": redis_url, "CREDIT_DATABASE_URL": database_url},
            is_ready=prints("credit worker ready: "),
        )
        self.engine = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
        self.ledger = Ledger(self.engine)
        celery = create_celery(redis_url)
        self.crediting = CeleryCrediting(celery, timeout_s=60)
        self.impatient_crediting = CeleryCrediting(celery, timeout_s=3)


@pytest.fixture
def credit_side(processes: Processes, tmp_path: Path) -> Iterator[CreditSide]:
    side = CreditSide(processes, tmp_path)
    side.redis.start()
    side.worker.start()
    yield side
    side.engine.dispose()


def a_batch(customer: str) -> list[Credit]:
    return [
        Credit(order_id=str(uuid.uuid4()), customer=customer, amount_cents=250, message_id="m", transaction_id=None)
        for _ in range(32)
    ]


def points(side: CreditSide, customer: str) -> int:
    found = side.ledger.find_customer(customer, max_entries=1)
    return found.points if found else 0


def credit_until_taken(side: CreditSide, batch: list[Credit]) -> list[CreditOutcome]:
    """As the broker does: delivers again until it is acknowledged, on a machine where 3 s are too short as well."""
    for crediting in (*[side.impatient_crediting] * 10, *[side.crediting] * 2):
        try:
            return crediting.credit(batch)
        except CreditingUnavailable as error:
            print(error)
    raise AssertionError("never taken")


def test_a_batch_is_in_the_ledger_when_its_outcomes_are_there(credit_side: CreditSide) -> None:
    batch = a_batch("ada")
    assert credit_side.crediting.credit(batch) == [CreditOutcome.CREDITED] * 32
    assert points(credit_side, "ada") == 64
    assert credit_side.crediting.credit(batch) == [CreditOutcome.ALREADY_CREDITED] * 32
    assert points(credit_side, "ada") == 64


def test_a_redis_that_lost_everything_costs_no_credit(credit_side: CreditSide) -> None:
    credit_side.crediting.credit(a_batch("ada"))
    credit_side.redis.kill()
    batch = a_batch("ada")
    with pytest.raises(CreditingUnavailable):
        credit_side.impatient_crediting.credit(batch)
    credit_side.redis.start()
    outcomes = credit_until_taken(credit_side, batch)
    assert set(outcomes) <= {CreditOutcome.CREDITED, CreditOutcome.ALREADY_CREDITED}
    assert points(credit_side, "ada") == 128


def test_without_a_worker_the_wait_ends_and_the_task_is_not_run_later(credit_side: CreditSide) -> None:
    credit_side.worker.stop()
    with pytest.raises(CreditingUnavailable, match="no result"):
        credit_side.impatient_crediting.credit(a_batch("ada"))
    credit_side.worker.start()
    credit_side.crediting.credit(a_batch("bob"))
    assert points(credit_side, "ada") == 0


def test_a_worker_killed_in_between_costs_no_credit(credit_side: CreditSide) -> None:
    credit_side.worker.kill()
    batch = a_batch("ada")
    with pytest.raises(CreditingUnavailable):
        credit_side.impatient_crediting.credit(batch)
    credit_side.worker.start()
    credit_until_taken(credit_side, batch)
    assert points(credit_side, "ada") == 64


def test_a_ledger_out_of_order_is_no_acknowledgement(credit_side: CreditSide) -> None:
    with credit_side.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE balances RENAME TO gone")
    with pytest.raises(CreditingUnavailable, match="LedgerUnavailable"):
        credit_side.crediting.credit(a_batch("ada"))


def test_a_wait_ends_when_the_service_stops(credit_side: CreditSide) -> None:
    credit_side.worker.stop()
    credit_side.crediting.stop()
    with pytest.raises(CreditingUnavailable, match="stops"):
        credit_side.crediting.credit(a_batch("ada"))
