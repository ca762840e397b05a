from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.server.statistics.histogram import Histogram


def test_a_value_equal_to_a_bound_belongs_to_it_and_one_beyond_all_bounds_to_infinity() -> None:
    histogram = Histogram((1, 5))
    for value in (0.5, 1, 1.5, 5, 6):
        histogram.observe(value)

    assert histogram.cumulative() == [("1", 2), ("5", 4), ("+Inf", 5)]
    assert histogram.total == 14


@given(st.lists(st.floats(0, 100)), st.lists(st.floats(0.1, 99), min_size=1, unique=True).map(sorted))
def test_each_bucket_holds_what_lies_at_or_below_its_bound(values: list[float], bounds: list[float]) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)

    counts = [count for _, count in histogram.cumulative()]
    assert counts == [sum(value <= bound for value in values) for bound in bounds] + [len(values)]
