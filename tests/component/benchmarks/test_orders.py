"""Tests of the benchmark that places orders with this broker and with an outbox, and of its table of results."""

from pathlib import Path

import pytest
from rich.console import Console

from lab.benchmarks.orders.outbox import BATCH, OutboxSender, OutboxStore
from lab.benchmarks.orders.report import PROCESSES, rows, tables
from lab.benchmarks.orders.sample import Case, Delivery, Sample, percentile
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.order import Item, Order
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.placing import order_message
from service_runtime.database.opening import open_database


class Woken:
    def __init__(self) -> None:
        self.times = 0

    def wake(self) -> None:
        self.times += 1


@pytest.fixture
def store(tmp_path: Path) -> OutboxStore:
    return OutboxStore(open_database(f"sqlite:///{tmp_path}/orders.db", migrations=MIGRATIONS, start_timeout_s=5))


def an_order(number: int) -> Order:
    items = (Item("book", 1, 1299),)
    return Order(order_id=f"order-{number}", customer="ada", items=items, currency="EUR", created_at_ms=1)


def test_an_order_and_its_message_are_stored_together_and_the_relay_is_told(store: OutboxStore) -> None:
    relay, order = Woken(), an_order(1)
    attempt = Attempt(order)
    OutboxSender(store, relay).send_in_transaction(order_message(order), attempt)
    assert attempt.outcome is Outcome.STORED
    assert store.find_order("order-1") == order
    (row,) = store.oldest()
    assert (row.key, row.body, relay.times) == ("order-1", order_message(order).body, 1)


def test_an_order_that_cannot_be_stored_leaves_no_message(store: OutboxStore) -> None:
    relay, order = Woken(), an_order(1)
    for expected in (Outcome.STORED, Outcome.UNAVAILABLE):
        attempt = Attempt(order)
        OutboxSender(store, relay).send_in_transaction(order_message(order), attempt)
        assert attempt.outcome is expected
    assert len(store.oldest()) == relay.times == 1


def test_the_relay_takes_the_oldest_messages_and_forgets_those_that_were_sent(store: OutboxStore) -> None:
    for number in range(BATCH + 2):
        store.store_with_message(an_order(number), order_message(an_order(number)))
    batch = store.oldest()
    assert [row.key for row in batch] == [f"order-{number}" for number in range(BATCH)]
    store.forget(batch)
    assert [row.key for row in store.oldest()] == [f"order-{BATCH}", f"order-{BATCH + 1}"]


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (75, 3), (99, 4), (100, 4), (1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: float) -> None:
    assert percentile([4, 2, 1, 3], percent) == expected


def test_no_values_have_a_percentile_of_0() -> None:
    assert percentile([], 99) == 0


def a_sample(rate: float, missing: int) -> Sample:
    return Sample(rate, [1.0, 2.0], [rate, 2 * rate], dict.fromkeys(PROCESSES, 3.0), refused=0, missing=missing)


def test_a_row_has_the_medians_of_its_rounds_and_counts_all_that_is_missing() -> None:
    case = Case(Delivery.OUTBOX_POLLED, "ours", "SQLite")
    (row,) = rows({case: [a_sample(10, 0), a_sample(30, 1), a_sample(20, 1)]})
    assert row[:4] == ("outbox, polled each second, ours, SQLite", "20 (10, 30)", "1.0, 2.0", "20, 40")
    assert row[-2:] == ("0", "2")


@pytest.mark.parametrize("width", [80, 180])
def test_its_tables_fit_the_terminal_and_have_every_figure_in_one_piece(width: int) -> None:
    samples = {Case(Delivery.TRANSACTIONAL, "Apache", "PostgreSQL"): [a_sample(1012, 0), a_sample(1230, 12)]}
    console = Console(width=width)
    with console.capture() as captured:
        console.print(*tables(samples, width))
    assert max(map(len, captured.get().splitlines())) <= width
    assert all(figure in captured.get() for figure in rows(samples)[0][1:])
