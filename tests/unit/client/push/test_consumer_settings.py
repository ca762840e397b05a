"""Tests the settings of a push consumer.

The defaults are RocketMQ's. The default maximum of redeliveries depends on whether messages are consumed in order.
"""

from pathlib import Path
from typing import get_type_hints

import pytest

from rocketmq_broker.client import ConsumeFromWhere, IllegalConfiguration, MessageModel
from rocketmq_broker.client.push.consumer_settings import ConsumerOptions, ConsumerSettings


def test_the_defaults_are_those_of_javas_consumer() -> None:
    settings = ConsumerSettings(consume_timestamp_ms=0)
    assert settings.message_model is MessageModel.CLUSTERING
    assert settings.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert (settings.consume_thread_max, settings.consume_message_batch_max_size) == (20, 1)
    assert (settings.pull_batch_size, settings.pull_threshold_for_queue) == (32, 1000)
    assert (settings.pull_threshold_size_for_queue, settings.consume_concurrently_max_span) == (100, 2000)
    assert settings.local_offset_directory == Path.home() / ".rocketmq_offsets"
    assert not settings.is_broadcasting


def test_editors_and_type_checkers_know_every_setting() -> None:
    assert get_type_hints(ConsumerOptions) == get_type_hints(ConsumerSettings)


@pytest.mark.parametrize(("given", "concurrent", "orderly"), [(None, 16, None), (-1, 16, None), (0, 0, 0), (3, 3, 3)])
def test_redeliveries_end_sooner_where_no_order_is_kept(given: int | None, concurrent: int, orderly: int | None) -> None:
    settings = ConsumerSettings(consume_timestamp_ms=0, max_reconsume_times=given)
    assert (settings.redeliveries, settings.orderly_redeliveries) == (concurrent, orderly)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("consume_thread_max", 1000),
        ("consume_message_batch_max_size", 1024),
        ("pull_batch_size", 1024),
        ("pull_threshold_for_queue", 65_535),
        ("pull_threshold_size_for_queue", 1024),
        ("consume_concurrently_max_span", 65_535),
        ("max_body_size", 2**31 - 1),
    ],
)
def test_a_number_has_a_least_and_a_most(name: str, most: int) -> None:
    for right in (1, most):
        ConsumerSettings(**{"consume_timestamp_ms": 0, name: right})  # type: ignore[arg-type]
    for wrong in (0, most + 1):
        with pytest.raises(IllegalConfiguration, match=f"{name} must be between 1 and {most}, not {wrong}"):
            ConsumerSettings(**{"consume_timestamp_ms": 0, name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["message_model", "consume_from_where"])
def test_a_model_is_a_member_of_its_enumeration(name: str) -> None:
    with pytest.raises(IllegalConfiguration, match=f"{name} must be"):
        ConsumerSettings(**{"consume_timestamp_ms": 0, name: "CLUSTERING"})  # type: ignore[arg-type]
