"""Tests the group names that a program gives its clients."""

import pytest

from rocketmq_broker.client import IllegalConfiguration, Producer, PullConsumer, PushConsumer


@pytest.mark.parametrize("kind", [PushConsumer, PullConsumer])
def test_a_consumer_group_that_leaves_no_room_for_its_retry_topic_is_refused(
    kind: type[PushConsumer] | type[PullConsumer],
) -> None:
    assert kind("g" * 120).group == "g" * 120
    with pytest.raises(IllegalConfiguration, match="at most 120"):
        kind("g" * 121)


def test_a_producer_group_has_no_retry_topic() -> None:
    assert Producer("g" * 255).group == "g" * 255
    with pytest.raises(IllegalConfiguration, match="longer"):
        Producer("g" * 256)
