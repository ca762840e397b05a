"""Tests how the doctor estimates a broker's clock, which no request returns."""

import pytest

from rocketmq_broker.admin.health.clocks import broker_time_ms, clock, clock_difference_ms

BOOT_MS = 1_700_000_000_000


def figures(runtime: str = "[ 1 days, 2 hours, 3 minutes, 4 seconds ]", boot: object = BOOT_MS) -> dict[str, str]:
    return {"bootTimestamp": str(boot), "runtime": runtime}


NOW_MS = BOOT_MS + ((26 * 60 + 3) * 60 + 4) * 1000


def test_the_time_is_that_of_the_start_and_what_has_passed_since() -> None:
    assert broker_time_ms(figures()) == NOW_MS


def test_java_writes_a_thousand_days_with_a_comma() -> None:
    assert broker_time_ms(figures("[ 1,200 days, 0 hours, 0 minutes, 0 seconds ]")) == BOOT_MS + 1200 * 86_400_000


@pytest.mark.parametrize(
    "said", [{}, figures("for ever"), figures(boot="soon"), figures(boot="9" * 40), figures(boot=-1), {"bootTimestamp": "1"}]
)
def test_a_broker_that_does_not_say_is_fine(said: dict[str, str]) -> None:
    assert broker_time_ms(said) is None
    found = clock("broker", said, 0, 0)
    assert (found.is_wrong, found.what, found.facts) == (False, "It does not report its time.", {})


@pytest.mark.parametrize(
    ("asked_ms", "answered_ms", "expected"),
    [
        (NOW_MS, NOW_MS + 5, 0),
        (NOW_MS + 990, NOW_MS + 999, 0),  # the figures leave out what is less than a second
        (NOW_MS - 400, NOW_MS + 300, 0),
        (NOW_MS - 3000, NOW_MS - 2000, 2000),
        (NOW_MS + 4000, NOW_MS + 4100, -3000),
    ],
)
def test_a_difference_is_what_the_answer_proves_and_no_more(asked_ms: int, answered_ms: int, expected: int) -> None:
    assert clock_difference_ms(figures(), asked_ms, answered_ms) == expected


@pytest.mark.parametrize(("ahead_ms", "words"), [(61_000, "1 m 1 s ahead of"), (-62_000, "1 m 1 s behind")])
def test_a_clock_that_is_far_off_is_wrong(ahead_ms: int, words: str) -> None:
    found = clock("broker", figures(), NOW_MS - ahead_ms, NOW_MS - ahead_ms)
    assert found.is_wrong
    assert words in found.what
    assert abs(int(found.facts["clockDifferenceMs"])) == 61_000


def test_a_clock_that_is_a_few_seconds_off_is_fine_and_told() -> None:
    found = clock("broker", figures(), NOW_MS - 4000, NOW_MS - 4000)
    assert (found.is_wrong, found.facts) == (False, {"clockDifferenceMs": 4000})
