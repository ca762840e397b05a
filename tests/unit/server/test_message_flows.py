"""Figures of single topics and groups."""

from broker.server.message_flows import GROUP_GET_NUMS, TOPIC_PUT_NUMS, Flow, MessageFlows
from broker.server.statistics import BrokerStatistics

NOW_MS = 1_700_000_000_000


def test_nothing_is_known_of_what_was_never_counted() -> None:
    flows = MessageFlows()
    assert flows.report(TOPIC_PUT_NUMS, "orders") is None
    assert flows.report("NO_SUCH_FIGURE", "orders") is None
    assert flows.pulled_per_second("orders", "g") == 0.0


def test_messages_put_are_counted_by_how_far_the_queues_reach() -> None:
    flows = MessageFlows()
    flows.on_arrival(b"orders", 0, 3)
    flows.on_arrival(b"orders", 1, 5)
    flows.on_arrival(b"orders", 0, 4)
    flows.sample(NOW_MS)
    report = flows.report(TOPIC_PUT_NUMS, "orders")
    assert report is not None
    assert report.minute == Flow(messages=9, messages_per_second=0.9, messages_per_call=3.0)


def test_messages_from_before_the_start_do_not_count() -> None:
    flows = MessageFlows()
    flows.begin_at([(b"orders", 0, 100)])
    flows.on_arrival(b"orders", 0, 101)
    flows.sample(NOW_MS)
    report = flows.report(TOPIC_PUT_NUMS, "orders")
    assert report is not None
    assert report.minute.messages == 1


def test_a_topic_that_was_deleted_and_made_again_counts_on() -> None:
    flows = MessageFlows()
    flows.on_arrival(b"orders", 0, 100)
    flows.on_arrival(b"orders", 0, 1)
    flows.sample(NOW_MS)
    report = flows.report(TOPIC_PUT_NUMS, "orders")
    assert report is not None
    assert report.minute.messages == 101


def test_the_minute_forgets_what_the_day_still_knows() -> None:
    flows = MessageFlows()
    flows.got(b"orders", "g", 30)
    for tick in range(8):
        flows.sample(NOW_MS + tick * 10_000)
    report = flows.report(GROUP_GET_NUMS, "orders@g")
    assert report is not None
    assert (report.minute.messages, report.hour.messages, report.day.messages) == (0, 30, 30)
    assert report.hour.messages_per_call == 30.0


def test_a_group_is_counted_apart_in_each_topic() -> None:
    flows = MessageFlows()
    flows.got(b"orders", "g", 30)
    flows.got(b"credits", "g", 10)
    flows.sample(NOW_MS)
    assert flows.pulled_per_second("orders", "g") == 3.0
    assert flows.pulled_per_second("credits", "g") == 1.0
    assert flows.pulled_per_second("orders", "other") == 0.0


def test_todays_count_starts_at_midnight() -> None:
    statistics = BrokerStatistics(start_ms=NOW_MS, messages_put=7, messages_got=5)
    statistics.sample(NOW_MS)
    statistics.sample(NOW_MS + 1000)
    assert statistics.put_at_midnight == 0
    statistics.sample(NOW_MS + 25 * 3_600_000)
    assert (statistics.put_at_midnight, statistics.got_at_midnight) == (7, 5)
