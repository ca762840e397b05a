"""What is an outage and what is a bad order, and what follows from it."""

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery.exceptions import NotRegistered, TaskRevokedError
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy.exc import OperationalError

from credit_service.adapters.credit_wire import UnreadableCredit
from credit_service.adapters.ledger import CreditNotStored, LedgerUnavailable
from credit_service.service_layer.faults import TRIES_BEFORE_GIVING_WAY, Fault, Step, fault_of, next_step, pause_s

TRIES = TRIES_BEFORE_GIVING_WAY


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
def test_an_outage_is_waited_out_whatever_else_is_so(orders: int, others_pass: bool, is_in_the_way: bool) -> None:
    step = next_step(Fault.OUTAGE, orders=orders, tries=10**6, others_pass=others_pass, is_in_the_way=is_in_the_way)
    assert step is Step.HOLD


@pytest.mark.parametrize(
    ("orders", "tries", "others_pass", "is_in_the_way", "step"),
    [
        (32, 1, False, False, Step.SPLIT),
        (2, TRIES, True, True, Step.SPLIT),
        (1, 1, False, False, Step.HOLD),
        (1, 10**6, False, False, Step.HOLD),
        (1, 1, True, False, Step.GIVE_BACK),
        (1, TRIES - 1, False, True, Step.HOLD),
        (1, TRIES, False, True, Step.ASK_THE_WORKERS),
        (1, TRIES, True, True, Step.GIVE_BACK),
    ],
)
def test_a_suspicion_costs_an_order_a_redelivery_only_if_others_pass(
    orders: int, tries: int, others_pass: bool, is_in_the_way: bool, step: Step
) -> None:
    found = next_step(Fault.SUSPECT, orders=orders, tries=tries, others_pass=others_pass, is_in_the_way=is_in_the_way)
    assert found is step


def test_pauses_grow_from_half_a_second_to_ten() -> None:
    assert [pause_s(failures) for failures in (1, 2, 3, 4, 5, 6, 7)] == [0.5, 1, 2, 4, 8, 10, 10]
    assert pause_s(10**9) == 10
