"""Tests the figures on how long messages took to be stored."""

from rocketmq_broker.server.durability.put_times import PutTimes

NAMES = [
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s",
    "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
]  # fmt: skip


def after_a_minute(*milliseconds: float) -> PutTimes:
    times = PutTimes()
    for each in milliseconds:
        times.observe(each / 1000, 1)
    times.begin_minute()
    return times


def test_nothing_is_said_before_a_minute_has_passed() -> None:
    times = PutTimes()
    times.observe(0.5, 1)
    assert (times.distribution(), times.percentile_ms(0.99)) == ("null", 0.0)


def test_each_request_is_in_the_class_of_its_time() -> None:
    times = after_a_minute(
        0.9, 1, 9.9, 10, 49, 50, 99, 100, 200, 499, 500, 1000, 2000, 3000, 4000, 5000, 9999, 10_000, 70_000_000
    )
    classes = dict(each.rsplit(":", 1) for each in times.distribution().split())
    assert list(classes) == [f"[{name}]" for name in NAMES]
    assert [int(count) for count in classes.values()] == [1, 2, 2, 2, 1, 2, 1, 1, 1, 1, 1, 2, 2]


def test_a_minute_without_messages_says_so() -> None:
    times = after_a_minute(5)
    times.begin_minute()
    assert times.distribution().startswith("[<=0ms]:0 [0~10ms]:0 ")
    assert times.percentile_ms(0.99) == 0.0


def test_a_percentile_is_the_time_within_which_so_many_were_done() -> None:
    times = after_a_minute(*range(1, 1001))
    assert (times.percentile_ms(0.99), times.percentile_ms(0.999)) == (990.0, 999.0)


def test_many_requests_of_one_flush_count_as_many() -> None:
    times = PutTimes()
    times.observe(0.002, 99)
    times.observe(0.300, 1)
    times.begin_minute()
    assert "[0~10ms]:99 " in times.distribution()
    assert (times.percentile_ms(0.99), times.percentile_ms(0.995)) == (2.0, 300.0)


def test_the_longest_is_that_since_the_start() -> None:
    times = after_a_minute(1500)
    times.begin_minute()
    times.observe(0.020, 1)
    assert times.max_ms == 1500
