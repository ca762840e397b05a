"""Tests that the order benchmark runs, and that each accepted order becomes a credit."""

from pathlib import Path

import pytest

from lab.benchmarks.orders.measure import Plan, measure
from lab.benchmarks.orders.placing import build_generator
from lab.benchmarks.orders.sample import Case, Delivery
from lab.benchmarks.side_by_side.generator import find_go

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(find_go() is None, reason="go not found: apt-get install golang-go")]


def test_orders_of_an_outbox_become_credits_and_are_measured(tmp_path: Path) -> None:
    build_generator()
    sample = measure(Case(Delivery.OUTBOX_NOTIFIED, "ours", "SQLite"), Plan(rate=10, in_flight=2, seconds=1), tmp_path)
    assert (sample.refused, sample.missing) == (0, 0)
    assert sample.orders_per_s > 0
    assert 0 < sample.post_ms[0] <= sample.post_ms[1]
    assert sample.credit_ms[1] > 0
