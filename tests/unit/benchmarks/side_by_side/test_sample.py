"""Tests that samples are read correctly from the output of the load generators."""

import pytest

from lab.benchmarks.side_by_side.plan import Kind
from lab.benchmarks.side_by_side.sample import Others, Seen, generated_sample, java_sample

SEEN = Seen(broker_cpu_s=2.0, peak_mib=70.0, others=Others(load_before=0.1))


def test_a_commit_that_the_broker_dropped_shows() -> None:
    printed = {"per_s": 900.0, "items": 1000, "p50_ms": 1.0, "p99_ms": 2.0, "taken": 2500, "visible": 1000, "errors": 0}
    sample = generated_sample(Kind.TRANSACTIONS, printed, SEEN, start_s=0.5)
    assert (sample.result, sample.dropped, sample.messages) == (900.0, 1500, 2500)


def test_cpu_time_is_that_of_one_message_that_became_visible_while_it_was_measured() -> None:
    printed = {"per_s": 900.0, "items": 1000, "taken": 2500, "visible": 2500}
    assert generated_sample(Kind.SENDS, printed, SEEN, 0.5).cpu_us == pytest.approx(2000)


def test_a_load_from_which_nothing_became_visible_has_no_cpu_time() -> None:
    printed = {"per_s": 0.0, "items": 0, "taken": 10, "visible": 0}
    assert generated_sample(Kind.TRANSACTIONS, printed, SEEN, 0.5).cpu_us is None


@pytest.mark.parametrize(
    ("kind", "result"), [(Kind.PULLS, 50.0), (Kind.LISTENER, 7.0), (Kind.CHECKS, 3.0), (Kind.TRANSACTIONS, 11.0)]
)
def test_each_kind_has_its_result(kind: Kind, result: float) -> None:
    printed = {"per_s": 11.0, "mb_per_s": 50.0, "p99_ms": 7.0, "seconds": 3.0, "items": 10, "missing": 2, "doubled": 1}
    sample = generated_sample(kind, printed, SEEN, 0.5)
    assert (sample.result, sample.dropped, sample.doubled) == (result, 2, 1)


def test_the_rate_of_the_java_client_is_cut_by_the_share_that_was_dropped() -> None:
    printed = {"tx_per_s": 1000.0, "committed_total": 400, "sent_total": 1000, "p50_ms": 1.0, "p99_ms": 2.0, "failures": 3}
    sample = java_sample(Kind.JAVA_TRANSACTIONS, printed, SEEN, 0.5)
    assert (sample.result, sample.dropped, sample.errors) == (pytest.approx(400), 600, 3)


def test_what_the_java_consumer_lost_shows() -> None:
    printed = {"msg_per_s": 500.0, "n": 100, "lost": 4, "duplicates": 1, "p50_ms": 1.0, "p99_ms": 2.0, "failures": 0}
    sample = java_sample(Kind.JAVA_CONSUMER, printed, SEEN, 0.5)
    assert (sample.result, sample.dropped, sample.doubled) == (500.0, 4, 1)


def test_a_machine_is_busy_when_others_use_more_than_a_tenth_of_a_processor() -> None:
    assert [Others(load_before=0, processors=used).is_busy for used in (0.1, 0.11)] == [False, True]
