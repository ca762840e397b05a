"""Tests the delay levels, and the queue in which a delayed message waits."""

import pytest

from rocketmq_broker.message import properties
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.server.schedule.delay_levels import Place, delay_level, final_place, parse_delay_levels, waiting_place


def test_levels_are_read_with_their_units() -> None:
    assert parse_delay_levels("1s 5m 2h 1d") == (1000, 300_000, 7_200_000, 86_400_000)


def test_a_delayed_message_comes_back_to_its_own_place_and_keeps_its_level() -> None:
    encoded = properties.encode({"KEYS": "k", "DELAY": "3"})
    waiting = waiting_place(Place(b"orders", 2, encoded), 3, 18)
    assert (waiting.topic, waiting.queue_id) == (b"SCHEDULE_TOPIC_XXXX", 2)
    assert properties.decode(waiting.properties) == {"KEYS": "k", "DELAY": "3", "REAL_TOPIC": "orders", "REAL_QID": "2"}
    final = final_place(waiting.properties)
    assert (final.topic, final.queue_id) == (b"orders", 2)
    assert properties.find(final.properties, "DELAY") == "3"


def test_a_level_too_high_counts_as_the_highest() -> None:
    waiting = waiting_place(Place(b"orders", 0, b""), 99, 18)
    assert waiting.queue_id == 17
    assert properties.find(waiting.properties, "DELAY") == "18"


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"REAL_TOPIC": "orders"},
        {"REAL_TOPIC": "orders", "REAL_QID": "x"},
        {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"},
        {"REAL_TOPIC": "SCHEDULE_TOPIC_XXXX", "REAL_QID": "0"},
        {"REAL_TOPIC": "RMQ_SYS_TRANS_OP_HALF_TOPIC", "REAL_QID": "0"},
        {"REAL_TOPIC": "TRANS_CHECK_MAX_TIME_TOPIC", "REAL_QID": "0"},
        {"REAL_TOPIC": "no topic", "REAL_QID": "0"},
        {"REAL_TOPIC": "orders", "REAL_QID": "-1"},
        {"REAL_TOPIC": "orders", "REAL_QID": "65535"},
        {"REAL_TOPIC": "orders", "REAL_QID": "²"},
    ],
)
def test_a_waiting_message_without_a_real_place_is_illegal(named: dict[str, str]) -> None:
    with pytest.raises(IllegalMessage):
        final_place(properties.encode(named))


def test_a_level_that_is_no_number_is_illegal() -> None:
    assert delay_level(properties.encode({"DELAY": "4"})) == 4
    assert delay_level(b"") == 0
    with pytest.raises(IllegalMessage):
        delay_level(properties.encode({"DELAY": "soon"}))
