"""Tests that a reconciliation compares all times, in milliseconds, with one cut-off time and its grace periods."""

import pytest

from pipelines.judging.cut_off import CutOff

AS_OF_MS = 1_790_000_000_000


def test_what_is_younger_than_the_grace_period_is_in_flight() -> None:
    assert CutOff(AS_OF_MS, grace_seconds=120).judged_until_ms == AS_OF_MS - 120_000


def test_what_is_older_than_the_patience_is_overdue() -> None:
    assert CutOff(AS_OF_MS, overdue_seconds=3600).overdue_until_ms == AS_OF_MS - 3_600_000


@pytest.mark.parametrize(("grace_seconds", "ahead_ms"), [(120, 1_800_000), (7200, 7_200_000)])
def test_a_time_may_be_ahead_by_half_an_hour_or_by_the_grace_period(grace_seconds: int, ahead_ms: int) -> None:
    assert CutOff(AS_OF_MS, grace_seconds=grace_seconds).future_from_ms == AS_OF_MS + ahead_ms
