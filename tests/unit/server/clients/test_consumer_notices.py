"""Tests which clients are notified of a change in a consumer group, and how often."""

import pytest

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.server.clients import consumer_notices
from rocketmq_broker.server.clients.consumer_notices import ConsumerNotices
from tests.unit.server.conftest import Wire


def test_the_notice_names_the_group_and_spares_those_that_do_not_read() -> None:
    notices, reads, reads_not = ConsumerNotices(), Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    reads_not.is_writable = False
    notices.group_changed("g", [reads, reads_not])
    assert notices.send_pending() is None
    ((code, header, _),) = reads.requests
    assert (code, header.consumer_group) == (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, "g")
    assert reads_not.requests == []


def test_a_thousand_members_that_join_one_after_the_other_are_told_once_each() -> None:
    notices = ConsumerNotices()
    members: list[Wire] = []
    for number in range(1000):
        members.append(Wire(f"127.0.0.1:{number + 1}"))
        notices.group_changed("g", list(members))
    rounds = 1
    while notices.send_pending() is not None:
        rounds += 1
    assert rounds == 2
    assert [len(member.requests) for member in members] == [1] * 1000


def test_a_change_after_the_notice_is_told_again() -> None:
    notices, member = ConsumerNotices(), Wire()
    for _ in range(2):
        notices.group_changed("g", [member])
        notices.send_pending()
    assert len(member.requests) == 2


def test_more_members_than_one_round_tells_are_told_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_notices, "MAX_AT_ONCE", 2)
    notices = ConsumerNotices()
    members = [Wire(f"127.0.0.1:{number}") for number in range(1, 4)]
    notices.group_changed("g", members)
    assert notices.send_pending() == 0
    assert [len(member.requests) for member in members] == [1, 1, 0]
    assert notices.send_pending() is None
    assert len(members[2].requests) == 1
