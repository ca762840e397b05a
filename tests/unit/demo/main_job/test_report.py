"""Tests the demo's report on the placed orders."""

from demo.main_job.report import orders_report
from demo.orders import MadeOrder, OrderAnswer, PlacingOutcome

REQUEST = MadeOrder("key", "ada", (("book", 2, 1_250),))


def answer(outcome: PlacingOutcome, attempts: int = 1) -> OrderAnswer:
    return OrderAnswer(REQUEST, outcome, None, attempts, 0.0)


def test_orders_are_counted_with_their_rate() -> None:
    assert orders_report([answer(PlacingOutcome.PLACED)] * 19 + [answer(PlacingOutcome.REFUSED)], 2.0, has_kills=True) == [
        "19 orders placed and 1 refused in 2.0 s: 10 orders/s with all restarts, 19 in the busiest second."
    ]


def test_where_nothing_was_restarted_no_restart_is_told() -> None:
    assert orders_report([answer(PlacingOutcome.PLACED)], 1.0, has_kills=False) == [
        "1 orders placed and 0 refused in 1.0 s: 1 orders/s, 1 in the busiest second."
    ]


def test_customers_who_asked_again_are_counted_with_their_requests() -> None:
    told = orders_report(
        [answer(PlacingOutcome.PLACED, 3), answer(PlacingOutcome.REFUSED, 2), answer(PlacingOutcome.PLACED)], 1.0, has_kills=True
    )
    assert told[1].startswith("2 of the 3 customers repeated their request, 6 requests in all: ")
    assert "used the same Idempotency-Key" in told[1]
