"""Tests the contents of the page for rows of a reconciliation."""

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.totals import LATENCY_STEPS, latency_ms
from pipelines.reporting.page.contents import MAX_PERIODS, CauseSum, ages_of, breaks_of, causes_of, latencies_of, periods_of
from tests.unit.pipelines.page.rows import AS_OF_MS, MINUTE_MS, matched, row

HOUR_MS = 60 * MINUTE_MS


def test_orders_are_counted_minute_by_minute_and_empty_minutes_are_shown() -> None:
    rows = [matched(5, latency_step=0), row("in_flight", ago_ms=2 * MINUTE_MS), row("missing_credit", ago_ms=2 * MINUTE_MS)]
    assert [(p.healthy, p.in_flight, p.wrong, p.total) for p in periods_of(rows)] == [(0, 1, 1, 2), (0, 0, 0, 0), (5, 0, 0, 5)]


def test_a_long_history_has_longer_periods() -> None:
    rows = [matched(1, latency_step=0, ago_ms=hours * HOUR_MS) for hours in range(1_000)]
    periods = periods_of(rows)
    assert 10 < len(periods) <= MAX_PERIODS + 1
    assert sum(period.total for period in periods) == 1_000


def test_an_absurd_time_makes_no_endless_list() -> None:
    assert len(periods_of([matched(1, latency_step=0), row("missing_credit", ago_ms=2**61)])) == 2


def test_nothing_has_no_periods_latencies_ages_or_causes() -> None:
    assert (periods_of([]), latencies_of([]), ages_of([], 1), causes_of([]), breaks_of([])) == ([], [], [], [], ([], 0))


def test_percentiles_are_right_to_a_fifth() -> None:
    step = 10 * LATENCY_STEPS
    rows = [matched(98, latency_step=0), matched(1, latency_step=step), matched(1, latency_step=step + 4 * LATENCY_STEPS)]
    (_, half), (_, most), (_, nearly_all), (_, slowest) = latencies_of(rows)
    assert half == most == latency_ms(0) == 0
    assert abs(nearly_all - 1024) < 1024 / 5
    assert abs(slowest - 16384) < 16384 / 5


def test_what_is_on_its_way_is_counted_by_age() -> None:
    rows = [row("in_flight", ago_ms=1), row("overdue", ago_ms=2 * HOUR_MS), row("in_flight", ago_ms=100 * HOUR_MS)]
    assert ages_of([*rows, matched(7, latency_step=1)], AS_OF_MS) == [(60, 1), (600, 0), (3_600, 0), (86_400, 1), (None, 1)]


def test_causes_are_told_with_their_money_the_dearest_first() -> None:
    rows = [
        row("in_flight", cause="young"),
        row("missing_credit", cause="dead_letter", at_stake_cents=100),
        row("missing_credit", cause="dead_letter", at_stake_cents=50, currency="USD"),
        row("double_credit", cause="one_message", at_stake_cents=1_000),
    ]
    assert causes_of(rows) == [
        CauseSum(Finding.DOUBLE_CREDIT, Cause.ONE_MESSAGE, 1, (("EUR", 1_000),)),
        CauseSum(Finding.MISSING_CREDIT, Cause.DEAD_LETTER, 2, (("EUR", 100), ("USD", 50))),
        CauseSum(Finding.IN_FLIGHT, Cause.YOUNG, 1, ()),
    ]


def test_a_break_has_the_timeline_of_its_order() -> None:
    told, count = breaks_of([row("missing_credit", order_id="a", half_at_ms=AS_OF_MS - 5, delivered_at_ms=AS_OF_MS + 70)])
    assert (count, told[0].order_id, told[0].currency) == (1, "a", "EUR")
    assert [(step.after_ms, step.what) for step in told[0].steps] == [
        (0, "half message stored"),
        (5, "ordered"),
        (75, "message delivered"),
    ]


def test_a_break_of_a_message_in_the_inbox_has_its_time_and_its_reason() -> None:
    told, _ = breaks_of([row("missing_credit", cause="parked", received_at_ms=AS_OF_MS + 7, last_error="Error: no")])
    assert [(step.after_ms, step.what) for step in told[0].steps] == [(0, "ordered"), (7, "stored in the inbox")]
    assert told[0].last_error == "Error: no"


def test_of_many_breaks_the_first_are_shown_and_those_on_their_way_come_last() -> None:
    told, count = breaks_of([row("in_flight", order_id="a"), *(row("missing_credit", order_id=str(n)) for n in range(9))], 3)
    assert (len(told), count) == (3, 10)
    assert {found.finding for found in told} == {Finding.MISSING_CREDIT}
