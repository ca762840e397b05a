"""Tests the statistics of a consumer: the last minute's rates and the last hour's failures."""

from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.protocol.bodies.running_info import ConsumeSpeed
from tests.passing_time import SteadyClock


def test_a_topic_of_which_nothing_came_has_no_speed() -> None:
    assert ConsumerStatistics(SteadyClock(1000.0)).speed("orders") == ConsumeSpeed()


def test_rates_and_averages_are_those_of_the_last_minute() -> None:
    clock = SteadyClock(1000.0)
    statistics = ConsumerStatistics(clock)
    for _ in range(6):
        statistics.pulled("orders", 20, 0.004)
        statistics.consumed("orders", 18, 2, 0.030)
        clock.now_s += 1
    statistics.pulled("refunds", 1, 1.0)
    speed = statistics.speed("orders")
    assert (speed.pull_tps, speed.consume_ok_tps, speed.consume_failed_tps, speed.consume_failed_msgs) == (2.0, 1.8, 0.2, 12)
    assert (round(speed.pull_rt, 6), round(speed.consume_rt, 6)) == (4.0, 30.0)


def test_after_a_minute_the_rates_are_gone_and_the_failures_after_an_hour() -> None:
    clock = SteadyClock(1000.0)
    statistics = ConsumerStatistics(clock)
    statistics.consumed("orders", 0, 3, 0.030)
    clock.now_s += 70
    speed = statistics.speed("orders")
    assert (speed.consume_ok_tps, speed.consume_failed_tps, speed.consume_failed_msgs) == (0.0, 0.0, 3)
    assert speed.consume_rt == 30.0, "without a call in the last minute the average is the hour's, as Java's is"
    clock.now_s += 3600
    assert statistics.speed("orders") == ConsumeSpeed()


def test_what_is_kept_has_a_bound() -> None:
    clock = SteadyClock(1000.0)
    statistics = ConsumerStatistics(clock)
    for _ in range(10_000):
        statistics.consumed("orders", 1, 0, 0.001)
        clock.now_s += 10
    assert len(statistics._spans["orders"]) == 360
