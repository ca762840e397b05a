"""Tests the group names that a program gives its clients."""

import pytest

from rocketmq_broker.client import IllegalConfiguration, Producer, PullConsumer, PushConsumer


@pytest.mark.parametrize(
    ("kind", "most", "words"), [(PushConsumer, 120, "at most 120"), (PullConsumer, 120, "at most 120"), (Producer, 255, "longer")]
)
def test_a_consumer_group_leaves_room_for_its_retry_topic_and_a_producer_group_has_none(
    kind: type[PushConsumer | PullConsumer | Producer], most: int, words: str
) -> None:
    assert kind("g" * most).group == "g" * most
    with pytest.raises(IllegalConfiguration, match=words):
        kind("g" * (most + 1))
