"""Tests the broker's throughput over 10, 60 and 600 s, and its counts by day."""

from rocketmq_broker.server.statistics.statistics import BrokerStatistics

NOON_MS = 1_800_014_400_000


def sampled(seconds: int) -> BrokerStatistics:
    """Returns statistics with a sample each second. In each second 2 messages are put and 1 is pulled, and a pull finds none."""
    statistics = BrokerStatistics(NOON_MS)
    for second in range(seconds):
        statistics.sample(NOON_MS + 1000 * second)
        statistics.messages_put += 2
        statistics.messages_got += 1
        statistics.pulls_found += 1
        statistics.pulls_missed += 3
    return statistics


def test_rates_are_of_the_last_10_60_and_600_seconds() -> None:
    statistics = sampled(100)
    for second in range(100, 110):
        statistics.messages_put += 8
        statistics.sample(NOON_MS + 1000 * second)
    assert statistics.put_rates() == f"{82 / 10!r} {(50 * 2 + 82) / 60!r} {(99 * 2 + 82) / 109!r}"


def test_rates_of_a_broker_that_just_started_are_of_its_samples() -> None:
    statistics = sampled(3)
    assert statistics.put_rates() == "2.0 2.0 2.0"
    assert statistics.got_rates() == statistics.found_rates() == "1.0 1.0 1.0"
    assert statistics.missed_rates() == "3.0 3.0 3.0"
    assert statistics.pull_rates() == "4.0 4.0 4.0"
    assert sampled(1).put_rates() == "0.0 0.0 0.0"


def test_a_day_ends_at_midnight() -> None:
    statistics = sampled(2)
    assert statistics.put_at_midnight == 0
    statistics.sample(NOON_MS + 24 * 3_600_000)
    assert (statistics.put_at_midnight, statistics.put_yesterday) == (4, 0)
    statistics.messages_put += 5
    statistics.sample(NOON_MS + 48 * 3_600_000)
    assert (statistics.put_at_midnight, statistics.put_yesterday) == (9, 4)
    assert (statistics.got_at_midnight, statistics.got_yesterday) == (2, 2)
