"""Tests the share of a common resource that one client can take."""

from rocketmq_broker.server.shares import FEW, RequestsInProgress, is_full


def test_a_party_with_few_gets_more_than_others_left_up_to_twice_as_much() -> None:
    assert [is_full(held, 100, FEW) for held in (99, 100)] == [False, True]
    assert [is_full(held, 100, FEW - 1) for held in (100, 199, 200)] == [False, False, True]


def test_one_party_has_all_that_nobody_else_wants_and_leaves_each_other_its_first() -> None:
    under_way = RequestsInProgress()
    for party in ("greedy", "other"):
        while not under_way.is_full_for(party, 100):
            under_way.begin(party)
    assert under_way.count == 100 + FEW
    under_way.end("other")
    assert (under_way.is_full_for("greedy", 100), under_way.is_full_for("other", 100)) == (True, False)
