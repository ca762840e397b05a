"""Tests the operators' requests that retry and dismiss dead letters."""

from collections.abc import Callable

import pytest

from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.message.properties import decode
from rocketmq_broker.protocol.codes import AdminRequestCode
from rocketmq_broker.protocol.headers.parked_admin import DismissDeadLetterRequestHeader, RetryDeadLetterRequestHeader
from tests.unit.server.parked.conftest import OF_THE_FIRST_ATTEMPT, Parking
from tests.unit.store.conftest import delete_topic

RETRY, DISMISS = AdminRequestCode.RETRY_DEAD_LETTER, AdminRequestCode.DISMISS_DEAD_LETTER
RETRY_TOPIC = "%RETRY%credits"


def offset(parking: Parking, index: int = 0) -> int:
    return parking.letters()[index].commit_log_offset


def test_a_retried_message_goes_to_its_group_alone_as_it_was_and_as_if_for_the_first_time(parking: Parking) -> None:
    parking.park(RECONSUME_TIME="16", ORIGIN_MESSAGE_ID="A1")

    mark = parking.retry(offset(parking))

    (again,) = parking.desk.messages(RETRY_TOPIC)
    expected = {**OF_THE_FIRST_ATTEMPT, "ORIGIN_MESSAGE_ID": "A1", "DEAD_LETTER_RETRIES": "1"}
    assert dict(decode(again.properties)) == expected
    (letter,) = parking.letters()
    assert again.reconsume_times == 0
    for field in ("body", "flag", "sys_flag", "born_timestamp", "born_host", "body_crc"):
        assert getattr(again, field) == getattr(letter, field)
    assert (mark.treatment, mark.retries, mark.queue_offset) == ("retried", 1, 0)
    assert parking.desk.messages("orders") == []
    assert parking.counts().dead_letters == {"credits": 0}


def test_a_retry_is_kept_with_who_asked_when_and_why(parking: Parking) -> None:
    parking.park()

    parking.retry(offset(parking), reason="the database is back")

    (mark,) = parking.marks(0)
    assert (mark.treatment, mark.reason, mark.at_ms) == ("retried", "the database is back", parking.desk.clock())
    assert mark.by == "127.0.0.1:5555"


def test_a_message_is_retried_twice_only_if_that_is_meant_and_it_shows(parking: Parking) -> None:
    parking.park()
    parking.retry(offset(parking))

    assert "the message was already retried; use --again" in parking.refused(RETRY, RetryDeadLetterRequestHeader(offset(parking)))
    assert len(parking.desk.messages(RETRY_TOPIC)) == 1
    assert parking.retry(offset(parking), again=True).retries == 2

    properties = [decode(record.properties)["DEAD_LETTER_RETRIES"] for record in parking.desk.messages(RETRY_TOPIC)]
    assert properties == ["1", "2"]
    assert [mark.retries for mark in parking.marks(0, history=True)] == [2, 1]


def test_a_message_that_dies_again_tells_how_often_it_was_retried(parking: Parking) -> None:
    parking.park(DEAD_LETTER_RETRIES="3")

    assert parking.retry(offset(parking)).retries == 4


def test_two_requests_at_once_retry_once(parking: Parking) -> None:
    parking.park()
    first = offset(parking)
    parking.request_without_settling(RETRY, RetryDeadLetterRequestHeader(first))

    assert "another request is processing this message" in parking.refused(RETRY, RetryDeadLetterRequestHeader(first))

    assert len(parking.desk.messages(RETRY_TOPIC)) == 1


def test_a_dismissed_message_leaves_the_count_and_keeps_its_reason_over_a_restart(
    parking: Parking, restarted: Callable[[Parking], Parking]
) -> None:
    parking.park()
    parking.park()

    parking.dismiss(offset(parking, 1), " a test order ")

    after = restarted(parking)
    assert after.counts().dead_letters == {"credits": 1}
    (mark,) = after.marks(0, count=10)
    assert (mark.queue_offset, mark.treatment, mark.reason) == (1, "dismissed", "a test order")


def test_what_was_dismissed_is_retried_only_if_that_is_meant(parking: Parking) -> None:
    parking.park()
    parking.dismiss(offset(parking), "a test order")

    refusal = parking.refused(RETRY, RetryDeadLetterRequestHeader(offset(parking)))
    assert "the message was already dismissed: a test order; use --again" in refusal
    parking.retry(offset(parking), again=True)

    assert [mark.treatment for mark in parking.marks(0, history=True)] == ["retried", "dismissed"]


def test_what_was_treated_is_not_dismissed(parking: Parking) -> None:
    parking.park()
    parking.retry(offset(parking))

    refusal = parking.refused(DISMISS, DismissDeadLetterRequestHeader(offset(parking), "known"))
    assert refusal == "the message was already retried"


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001, "two\nlines"])
def test_a_dismissal_needs_a_reason_that_can_be_kept(parking: Parking, reason: str) -> None:
    parking.park()

    assert "reason" in parking.refused(DISMISS, DismissDeadLetterRequestHeader(offset(parking), reason))
    assert parking.counts().dead_letters == {"credits": 1}


def test_only_dead_letters_are_treated(parking: Parking) -> None:
    parking.park("orders")
    (other,) = parking.desk.messages("orders")

    assert "is in topic orders" in parking.refused(RETRY, RetryDeadLetterRequestHeader(other.commit_log_offset))
    assert "no message at commit log offset" in parking.refused(RETRY, RetryDeadLetterRequestHeader(10_000_000))
    assert "no message at commit log offset" in parking.refused(DISMISS, DismissDeadLetterRequestHeader(-1, "x"))


def test_a_message_whose_topic_was_deleted_is_not_treated(parking: Parking) -> None:
    parking.park()
    gone = offset(parking)
    delete_topic(parking.desk.store, b"%DLQ%credits")

    assert "no consume queue contains a message" in parking.refused(RETRY, RetryDeadLetterRequestHeader(gone))


def test_a_message_that_a_producer_sent_to_the_dead_letters_has_nowhere_to_go_back_to(parking: Parking) -> None:
    parking.park(RETRY_TOPIC="")

    assert "RETRY_TOPIC" in parking.refused(RETRY, RetryDeadLetterRequestHeader(offset(parking)))
    assert parking.counts().dead_letters == {"credits": 1}


@pytest.mark.parametrize(("group", "why"), [("CID_RMQ_SYS_TRANS", "is a system group"), ("g" * 121, "at most 120")])
def test_a_group_that_no_consumer_can_have_gets_nothing_back(parking: Parking, group: str, why: str) -> None:
    parking.park(f"%DLQ%{group}")
    (letter,) = parking.desk.messages(f"%DLQ%{group}")

    assert why in parking.refused(RETRY, RetryDeadLetterRequestHeader(letter.commit_log_offset))


def test_a_group_without_a_retry_queue_gets_nothing_back(parking: Parking) -> None:
    parking.park()
    parking.desk.groups.update(SubscriptionGroupConfig("credits", retry_queue_nums=0))

    assert "retryQueueNums" in parking.refused(RETRY, RetryDeadLetterRequestHeader(offset(parking)))


def test_marks_of_a_range_are_those_of_its_messages_alone(parking: Parking) -> None:
    for _ in range(4):
        parking.park()
    for index in range(4):
        parking.dismiss(offset(parking, index), f"reason {index}")

    assert [mark.reason for mark in parking.marks(1, count=2)] == ["reason 1", "reason 2"]
    assert parking.marks(0, count=-5) == []
    assert len(parking.marks(0, count=1 << 30)) == 4
