"""Tests how the events of one key become a history."""

from pipelines.judging.history import COUNTS, EVENT_COLUMNS, FIRST, KEY, LAST, SUMS, aggregates


def test_a_history_has_a_column_for_all_that_an_event_may_say() -> None:
    assert [*KEY, *aggregates()] == list(EVENT_COLUMNS)


def test_what_no_event_fills_is_not_grouped() -> None:
    said = {
        "deliveries": "of_log.deliveries",
        "item_cents": "item_cents",
        "customer": "of_orders.customer",
        "dead_at_ms": "of_log.dead_at_ms",
    }
    made = aggregates(said)
    assert made["deliveries"] == "COALESCE(SUM(of_log.deliveries), 0)"
    assert made["item_cents"] == "SUM(item_cents)"
    assert made["customer"] == "MIN(of_orders.customer)"
    assert made["dead_at_ms"] == "MAX(of_log.dead_at_ms)"
    assert {made[name] for name in COUNTS if name not in said} == {"0"}
    assert {made[name] for name in (*SUMS, *FIRST, *LAST) if name not in said} == {"NULL"}
