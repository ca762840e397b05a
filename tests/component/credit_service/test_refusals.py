"""Tests of rules that refuse rows. If all rows are refused, messages wait; if only some are, their messages are parked."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from service_runtime.database.engine import create_database_engine
from tests.component.credit_service.conftest import orders, points
from tests.component.credit_service.test_crediting import drain
from tests.database_rules import NAMES, rule_of, service_url
from tests.passing_time import Clock

LARGEST = 100
SMALL, LARGE = LARGEST * 100, (LARGEST + 1) * 100
TOO_NARROW = "ALTER TABLE credits ALTER COLUMN order_id TYPE {0} USING left(order_id, 36)"


@pytest.fixture
def worker(database_url: str, engine: Engine, clock: Clock) -> Iterator[Ledger]:
    """Yields a ledger that is opened with the database account of the service."""
    opened = create_database_engine(service_url(database_url))
    yield Ledger(opened, clock.world())
    opened.dispose()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("some")])
def test_a_rule_that_refuses_every_row_costs_time_and_nothing_else(
    worker: Ledger, engine: Engine, clock: Clock, name: str
) -> None:
    rule = rule_of(engine, name, "credits", "points", LARGEST, too_narrow=TOO_NARROW)
    rule.is_set_up(engine)
    worker.store(orders(32, amount_cents=SMALL))
    for _ in range(15):
        result = drain(worker, max_tries=2, cancel_refused=True)
        assert (result.handled, result.parked) == (0, 0)
        clock.pass_s(10)
    state = worker.inbox.state()
    assert (state.waiting, state.suspected, worker.refusals.state().waiting) == (32, 0, 0)
    rule.is_mended(engine)
    clock.pass_s(1)
    while drain(worker, max_tries=2, cancel_refused=True).handled:
        pass
    assert (points(worker), worker.inbox.state().waiting) == (32 * LARGEST, 0)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("some")])
@pytest.mark.parametrize("cancel_refused", [False, True])
def test_a_rule_that_refuses_some_parks_those_and_delays_no_other(
    worker: Ledger, engine: Engine, clock: Clock, name: str, cancel_refused: bool
) -> None:
    rule = rule_of(engine, name, "credits", "points", LARGEST, too_narrow=TOO_NARROW)
    rule.is_set_up(engine)
    worker.store([*orders(3, first=100, amount_cents=LARGE), *orders(6, amount_cents=SMALL)])
    assert drain(worker, max_tries=2, cancel_refused=cancel_refused).handled == 6
    for number in range(2):
        clock.pass_s(4)
        worker.store(orders(1, first=10 + number, amount_cents=SMALL))
        drain(worker, max_tries=2, cancel_refused=cancel_refused)
    state = worker.inbox.state()
    assert (state.waiting, state.parked, points(worker)) == (0, 0 if cancel_refused else 3, 8 * LARGEST)
    assert worker.refusals.state().waiting == (3 if cancel_refused else 0)
    rule.is_mended(engine)
    assert worker.inbox.retry() == state.parked
    drain(worker)
    assert points(worker) == 8 * LARGEST + state.parked * (LARGEST + 1)
