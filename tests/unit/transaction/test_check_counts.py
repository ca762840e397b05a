import pytest

from rocketmq_broker.transaction.checking.check_counts import check_counts_as_json, check_counts_from_json
from tests.unit.transaction.records import transaction


def test_check_counts_survive_the_file() -> None:
    content = check_counts_as_json([transaction(100, checks=2), transaction(200, checks=0), transaction(300, checks=15)], {})

    assert content == {"checks": {"100": 2, "300": 15}}
    assert check_counts_from_json(content) == {100: 2, 300: 15}


def test_checks_whose_answer_cannot_arrive_any_more_are_not_kept() -> None:
    content = check_counts_as_json([transaction(100, checks=2), transaction(200, checks=1)], {100: 1, 200: 1, 300: 1})

    assert content == {"checks": {"100": 1}}


@pytest.mark.parametrize("content", [None, [], {}, {"checks": 1}, {"checks": {"x": 1}}, {"checks": {"1": None}}])
def test_a_damaged_file_means_that_nothing_is_known(content: object) -> None:
    assert check_counts_from_json(content) == {}
