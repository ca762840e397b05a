"""What is an outage and what is a bad order, and what follows from it."""

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery.exceptions import NotRegistered, TaskRevokedError
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy.exc import OperationalError

from credit_service.adapters.credit_wire import UnreadableCredit
from credit_service.adapters.ledger import CreditNotStored, LedgerUnavailable
from credit_service.service_layer.faults import (
    FAILURES_ALONE,
    Fault,
    FaultRecord,
    FaultStep,
    fault_of,
    next_step,
)


@pytest.mark.parametrize(
    "error",
    [
        LedgerUnavailable("the database is gone"), NotRegistered("credit_service.credit_orders"), TaskRevokedError("revoked"),
        RedisConnectionError("refused"), OperationalError("x", None, Exception()), ConnectionResetError(), TimeoutError(),
        PermissionError("credits.db"), ModuleNotFoundError("credit_service"), OSError(28, "No space left on device"),
    ],
)  # fmt: skip
def test_what_only_the_infrastructure_does_is_an_outage(error: Exception) -> None:
    assert fault_of(error) is Fault.OUTAGE


@pytest.mark.parametrize(
    "error",
    [
        KeyError("points"), TypeError(), ValueError(), ZeroDivisionError(), RecursionError(), MemoryError(),
        WorkerLostError("signal 9"), TimeLimitExceeded(30), CreditNotStored("order 1"), UnreadableCredit("customer"),
    ],
)  # fmt: skip
def test_what_one_order_may_do_is_a_suspicion(error: Exception) -> None:
    assert fault_of(error) is Fault.SUSPECT


def test_an_error_whose_class_is_known_to_the_worker_alone_is_told_by_its_name() -> None:
    assert fault_of(type("LedgerUnavailable", (Exception,), {"__module__": "elsewhere"})()) is Fault.OUTAGE
    assert fault_of(type("ErrorOfANewerVersion", (Exception,), {})()) is Fault.SUSPECT


@pytest.mark.parametrize("orders", [1, 32])
@pytest.mark.parametrize("others_pass", [False, True])
@pytest.mark.parametrize("is_in_the_way", [False, True])
def test_an_outage_is_waited_out_however_long_it_takes(orders: int, others_pass: bool, is_in_the_way: bool) -> None:
    record = FaultRecord(
        orders=orders, tries=10**6, others_pass=others_pass, is_in_the_way=is_in_the_way, failures_alone=FAILURES_ALONE - 1
    )
    assert next_step(Fault.OUTAGE, record) is FaultStep.HOLD


@pytest.mark.parametrize(
    ("record", "step"),
    [
        (FaultRecord(orders=32), FaultStep.SPLIT),
        (FaultRecord(orders=2, tries=60, others_pass=True, is_in_the_way=True), FaultStep.SPLIT),
        (FaultRecord(orders=1, tries=1), FaultStep.HOLD),
        (FaultRecord(orders=1, tries=10**6), FaultStep.HOLD),
        (FaultRecord(orders=1, tries=2, others_pass=True), FaultStep.GIVE_BACK),
        (FaultRecord(orders=1, tries=6, is_in_the_way=True), FaultStep.GIVE_WAY),
        (FaultRecord(orders=1, tries=6, others_pass=True, is_in_the_way=True), FaultStep.GIVE_BACK),
    ],
)
def test_a_suspicion_costs_an_order_a_redelivery_only_if_others_pass(record: FaultRecord, step: FaultStep) -> None:
    assert next_step(Fault.SUSPECT, record) is step


@pytest.mark.parametrize(("orders", "step"), [(32, FaultStep.SPLIT), (1, FaultStep.GIVE_BACK)])
def test_an_outage_that_meets_the_same_orders_again_and_again_while_others_pass_is_none(orders: int, step: FaultStep) -> None:
    assert next_step(Fault.OUTAGE, FaultRecord(orders=orders, failures_alone=FAILURES_ALONE)) is step
