"""Tests the statistics of each topic and each consumer group."""

import pytest

from rocketmq_broker.server.statistics.flow_counter import Flow
from rocketmq_broker.server.statistics.message_flows import (
    BROKER_GET_NUMS,
    BROKER_PUT_NUMS,
    GROUP_GET_NUMS,
    GROUP_GET_SIZE,
    SNDBCK_PUT_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
    MessageFlows,
)
from rocketmq_broker.server.statistics.statistics import BrokerStatistics

NOW_MS = 1_700_000_000_000


def minute(flows: MessageFlows, name: str, key: str) -> Flow:
    flows.sample(NOW_MS)
    report = flows.report(name, key)
    assert report is not None
    return report.minute


@pytest.mark.parametrize("name", [TOPIC_PUT_SIZE, GROUP_GET_SIZE, SNDBCK_PUT_NUMS, BROKER_PUT_NUMS, BROKER_GET_NUMS])
@pytest.mark.parametrize("key", ["DefaultCluster", "orders", "orders@g"])
def test_a_figure_does_not_exist_before_there_was_something_to_count(name: str, key: str) -> None:
    flows = MessageFlows("DefaultCluster")
    flows.sample(NOW_MS)
    assert flows.report(name, key) is None


def test_bytes_that_groups_pulled_are_counted() -> None:
    flows = MessageFlows()
    flows.got(b"orders", "g", 3, 300)
    flows.got(b"orders", "g", 1, 500)
    assert minute(flows, GROUP_GET_SIZE, "orders@g") == Flow(amount=800, per_second=80.0, per_call=400.0)


def test_messages_that_a_group_sends_back_are_counted_by_where_it_got_them() -> None:
    flows = MessageFlows()
    flows.sent_back(b"orders", "g")
    flows.sent_back(b"orders", "g")
    assert minute(flows, SNDBCK_PUT_NUMS, "orders@g") == Flow(amount=2, per_second=0.2, per_call=1.0)
    assert flows.report(SNDBCK_PUT_NUMS, "orders@other") is None


def test_all_messages_together_are_known_by_the_clusters_name() -> None:
    statistics = BrokerStatistics(start_ms=NOW_MS, flows=MessageFlows("DefaultCluster"), messages_put=70, messages_got=50)
    statistics.sample_flows(NOW_MS)
    assert minute(statistics.flows, BROKER_PUT_NUMS, "DefaultCluster") == Flow(amount=70, per_second=7.0)
    assert minute(statistics.flows, BROKER_GET_NUMS, "DefaultCluster").amount == 50
    assert statistics.flows.report(BROKER_PUT_NUMS, "OtherCluster") is None


def test_nothing_is_known_of_what_was_never_counted() -> None:
    flows = MessageFlows()
    assert flows.report(TOPIC_PUT_NUMS, "orders") is None
    assert flows.report("NO_SUCH_FIGURE", "orders") is None
    assert flows.pulled_per_second("orders", "g") == 0.0


def test_messages_put_are_counted_by_how_far_the_queues_reach() -> None:
    flows = MessageFlows()
    flows.on_arrival(b"orders", 0, 3, 300)
    flows.on_arrival(b"orders", 1, 5, 500)
    flows.on_arrival(b"orders", 0, 4, 1000)
    assert minute(flows, TOPIC_PUT_NUMS, "orders") == Flow(amount=9, per_second=0.9, per_call=1.0)
    assert minute(flows, TOPIC_PUT_SIZE, "orders") == Flow(amount=1800, per_second=180.0, per_call=200.0)


def test_messages_from_before_the_start_do_not_count() -> None:
    flows = MessageFlows()
    flows.begin_at([(b"orders", 0, 100)])
    flows.on_arrival(b"orders", 0, 101, 50)
    assert minute(flows, TOPIC_PUT_NUMS, "orders").amount == 1


def test_a_topic_that_was_deleted_and_made_again_counts_on() -> None:
    flows = MessageFlows()
    flows.on_arrival(b"orders", 0, 100, 50)
    flows.on_arrival(b"orders", 0, 1, 50)
    assert minute(flows, TOPIC_PUT_NUMS, "orders").amount == 101


def test_the_minute_forgets_what_the_day_still_knows() -> None:
    flows = MessageFlows()
    flows.got(b"orders", "g", 30, 3000)
    for tick in range(1, 361):
        flows.sample(NOW_MS + tick * 10_000)
    report = flows.report(GROUP_GET_NUMS, "orders@g")
    assert report is not None
    assert (report.minute.amount, report.hour.amount, report.day.amount) == (0, 30, 30)
    assert report.hour.per_call == 30.0


def test_hour_and_day_are_sampled_first_when_10_minutes_and_an_hour_have_passed() -> None:
    """The figures of an hour and a day are first sampled after 10 minutes and after an hour, as in Apache's broker.

    Until then, mqadmin shows the last minute instead of the first 10 s.
    """
    flows = MessageFlows()
    flows.got(b"orders", "g", 4, 400)
    known = []
    for tick in range(1, 361):
        flows.sample(NOW_MS + tick * 10_000)
        flows.got(b"orders", "g", 1, 100)
        report = flows.report(GROUP_GET_NUMS, "orders@g")
        assert report is not None
        known.append((report.hour.amount, report.day.amount))
    assert known[:59] == [(0, 0)] * 59
    assert known[59] == (63, 0)
    assert known[359] == (363, 363)


def test_a_group_is_counted_apart_in_each_topic() -> None:
    flows = MessageFlows()
    flows.got(b"orders", "g", 30, 3000)
    flows.got(b"credits", "g", 10, 1000)
    flows.sample(NOW_MS)
    assert flows.pulled_per_second("orders", "g") == 3.0
    assert flows.pulled_per_second("credits", "g") == 1.0
    assert flows.pulled_per_second("orders", "other") == 0.0
