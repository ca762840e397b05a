"""Each parked message is logged once, and waits until an operator handles it."""

import logging
from collections.abc import Callable

import pytest

from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.server.parked import ParkedPlace, Treatment
from rocketmq_broker.server.parked.parked_messages import AT_MOST_AT_ONCE
from tests.unit.server.parked.conftest import DISCARD_TOPIC, DLQ, Parking, rings
from tests.unit.store.conftest import delete_topic

OPERATOR = host_bytes("10.0.0.9", 5555)


def place_of(parking: Parking, queue_offset: int, topic: str = DLQ) -> ParkedPlace:
    record = parking.desk.messages(topic)[queue_offset]
    return ParkedPlace(record.topic, record.queue_id, record.queue_offset, record.commit_log_offset)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}
    return [record.getMessage() for record in caplog.records]


def test_each_dead_letter_has_one_line_in_the_log_with_the_command_that_brings_it_back(
    parking: Parking, caplog: pytest.LogCaptureFixture
) -> None:
    parking.park()
    parking.settle()

    (line,) = lines(caplog)
    (letter,) = parking.letters()
    message_id = offset_message_id(letter.store_host, letter.commit_log_offset)
    assert line.startswith("dead letter: message A1 of topic orders, keys order-1, consumer group credits, redeliveries 16. ")
    assert line.endswith(f"python -m rocketmq_broker.admin dead-letters retry {message_id}")


def test_each_discarded_message_has_one_line_in_the_log_with_the_command_that_brings_it_back(
    parking: Parking, caplog: pytest.LogCaptureFixture
) -> None:
    parking.park(DISCARD_TOPIC, PGROUP="order_service", REAL_TOPIC="orders", TRANSACTION_CHECK_TIMES="15")
    parking.settle()

    (line,) = lines(caplog)
    (gone,) = parking.desk.messages(DISCARD_TOPIC)
    assert line.startswith(
        "discarded: transaction A1, its message for topic orders, keys order-1, producer group order_service, "
    )
    assert "checks 15. " in line
    assert line.endswith(f"python -m rocketmq_broker.admin resume {offset_message_id(gone.store_host, gone.commit_log_offset)}")


def test_what_a_client_wrote_into_its_keys_begins_no_line_of_its_own(parking: Parking, caplog: pytest.LogCaptureFixture) -> None:
    parking.park(KEYS="order-1\n2026-01-01 ERROR all is lost\x1b[2J")

    (line,) = lines(caplog)
    assert line.isprintable()


def test_messages_in_other_topics_are_none_of_our_business(parking: Parking, caplog: pytest.LogCaptureFixture) -> None:
    parking.park("orders")
    parking.park("%RETRY%credits")

    assert lines(caplog) == []
    assert (parking.parked.dead_letters(), parking.parked.discarded()) == ({}, {})


def test_parked_messages_are_counted_by_group_until_they_are_treated(parking: Parking) -> None:
    parking.park()
    parking.park()
    parking.park("%DLQ%mails")
    parking.park(DISCARD_TOPIC, PGROUP="order_service")
    assert (parking.parked.dead_letters(), parking.parked.discarded()) == ({"credits": 2, "mails": 1}, {"order_service": 1})

    parking.parked.append_mark(place_of(parking, 0), Treatment.RETRIED, now_ms=5, by_host=OPERATOR, retries=1)
    parking.parked.append_mark(place_of(parking, 0, DISCARD_TOPIC), Treatment.RESUMED, now_ms=6, by_host=OPERATOR)
    parking.settle()

    assert (parking.parked.dead_letters(), parking.parked.discarded()) == ({"credits": 1, "mails": 1}, {"order_service": 0})


def test_a_mark_counts_once_it_is_visible(parking: Parking) -> None:
    parking.park()
    place = place_of(parking, 0)

    parking.parked.append_mark(place, Treatment.DISMISSED, now_ms=5, by_host=OPERATOR, reason="a test order")
    assert parking.parked.is_being_treated(place)
    assert parking.parked.latest_mark(*place[:3]) is None
    parking.settle()

    assert not parking.parked.is_being_treated(place)
    mark = parking.parked.latest_mark(*place[:3])
    assert mark is not None
    assert (mark.treatment, mark.reason, mark.at_ms, mark.by) == (Treatment.DISMISSED, "a test order", 5, "10.0.0.9:5555")


def test_a_mark_that_was_lost_can_be_made_again(parking: Parking) -> None:
    parking.park()
    place = place_of(parking, 0)
    position = parking.desk.store.written_position
    parking.parked.append_mark(place, Treatment.RETRIED, now_ms=5, by_host=OPERATOR)

    parking.parked.take_back(position)

    assert not parking.parked.is_being_treated(place)


def test_all_marks_of_a_message_are_kept_the_latest_first(parking: Parking) -> None:
    parking.park()
    parking.park()
    for retries in (1, 2, 3):
        parking.parked.append_mark(place_of(parking, 0), Treatment.RETRIED, now_ms=retries, by_host=OPERATOR, retries=retries)
        parking.parked.append_mark(place_of(parking, 1), Treatment.RETRIED, now_ms=9, by_host=OPERATOR)
        parking.settle()

    assert [mark.retries for mark in parking.parked.marks(DLQ.encode(), 0, 0)] == [3, 2, 1]
    assert parking.parked.marks(DLQ.encode(), 0, 7) == []


def test_a_restart_finds_what_waits_and_what_was_treated_and_says_so_once(
    parking: Parking, restarted: Callable[[Parking], Parking], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        parking.park()
    parking.park(DISCARD_TOPIC, PGROUP="order_service")
    parking.parked.append_mark(place_of(parking, 1), Treatment.DISMISSED, now_ms=5, by_host=OPERATOR, reason="known")
    parking.settle()
    caplog.clear()

    after = restarted(parking)

    assert (after.parked.dead_letters(), after.parked.discarded()) == ({"credits": 2}, {"order_service": 1})
    mark = after.parked.latest_mark(DLQ.encode(), 0, 1)
    assert mark is not None
    assert mark.reason == "known"
    (line,) = lines(caplog)
    assert line.startswith(
        "parked messages: 1 discarded, 2 dead letters. To list them: python -m rocketmq_broker.admin discarded"
    )


def test_a_restart_with_nothing_to_do_says_nothing(
    parking: Parking, restarted: Callable[[Parking], Parking], caplog: pytest.LogCaptureFixture
) -> None:
    restarted(parking)

    assert lines(caplog) == []


def test_a_topic_that_was_deleted_and_made_anew_begins_without_marks(
    parking: Parking, restarted: Callable[[Parking], Parking]
) -> None:
    parking.park()
    parking.parked.append_mark(place_of(parking, 0), Treatment.RETRIED, now_ms=5, by_host=OPERATOR)
    parking.settle()
    delete_topic(parking.desk.store, DLQ.encode())

    parking.park()

    assert parking.parked.dead_letters() == {"credits": 1}
    assert restarted(parking).parked.dead_letters() == {"credits": 1}


def test_a_deleted_topic_waits_for_nobody(parking: Parking) -> None:
    parking.park()
    delete_topic(parking.desk.store, DLQ.encode())

    parking.parked.forget_expired()

    assert parking.parked.dead_letters() == {}


def test_a_flood_is_noted_in_portions_and_its_marks_come_after_it(parking: Parking, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(AT_MOST_AT_ONCE + 50):
        parking.park(UNIQ_KEY=f"A{number}", settle=False)
    parking.desk.commit.settle()
    last = place_of(parking, AT_MOST_AT_ONCE + 49)
    parking.parked.append_mark(last, Treatment.RETRIED, now_ms=5, by_host=OPERATOR)
    parking.desk.commit.settle()

    assert parking.parked.read_arrived() == 0
    assert len(lines(caplog)) == AT_MOST_AT_ONCE
    parking.settle()

    assert len(lines(caplog)) == AT_MOST_AT_ONCE + 50
    assert parking.parked.dead_letters() == {"credits": AT_MOST_AT_ONCE + 49}


async def test_what_arrives_wakes_whoever_takes_note(parking: Parking) -> None:
    parking.park(settle=False)
    parking.desk.commit.settle()

    await rings(parking.parked)
