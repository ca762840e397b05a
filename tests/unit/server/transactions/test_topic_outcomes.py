from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.server.statistics.histogram import Histogram
from rocketmq_broker.server.transactions.topic_outcomes import FINISH_LATENCY_S, TopicOutcomes


@given(st.lists(st.one_of(st.integers(0, 10_000), st.integers(0, 200_000_000), st.sampled_from([5000, 5001, 86_400_000]))))
def test_the_quick_count_of_latencies_is_that_of_a_histogram(latencies_ms: list[int]) -> None:
    outcomes, histogram = TopicOutcomes(), Histogram([bound * 1000 for bound in FINISH_LATENCY_S])
    for latency_ms in latencies_ms:
        outcomes.committed(latency_ms)
        histogram.observe(latency_ms)

    assert outcomes.finish_latency_s().counts == histogram.counts
    assert outcomes.finish_latency_s().total == histogram.total / 1000
    assert outcomes.commits == len(latencies_ms)


def test_a_clock_that_was_set_back_makes_a_commit_prompt() -> None:
    outcomes = TopicOutcomes()
    outcomes.committed(-3000)

    assert (outcomes.commits, outcomes.finish_latency_s().total) == (1, 0)
