import pytest

from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.store.queues.dispatch import unit_tags_code

LEVELS_MS = (1000, 5000, 10_000)


@pytest.mark.parametrize(("level", "delay_ms"), [(b"1", 1000), (b"3", 10_000), (b"4", 10_000), (b"99", 10_000)])
def test_a_delayed_message_waits_as_long_as_its_level_says_and_no_longer_than_the_last_one(level: bytes, delay_ms: int) -> None:
    assert unit_tags_code(b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01a\x02DELAY\x01" + level, 500, LEVELS_MS) == 500 + delay_ms


@pytest.mark.parametrize("delay", [b"", b"\x02DELAY\x010", b"\x02DELAY\x01-1", b"\x02DELAY\x01soon"])
def test_a_message_in_the_schedule_topic_that_no_level_delays_is_queued_under_its_tag(delay: bytes) -> None:
    assert unit_tags_code(b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01a" + delay, 500, LEVELS_MS) == tags_code("a")


def test_the_delay_level_of_a_message_in_its_own_topic_is_over() -> None:
    delay = b"DELAY\x012"
    assert unit_tags_code(b"orders", delay, 500, LEVELS_MS) == 0
    assert unit_tags_code(b"orders", delay + b"\x02TAGS\x01a", 500, LEVELS_MS) == tags_code("a")
