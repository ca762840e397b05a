"""Fixtures with messages as a transaction listener and a consumer receive them."""

import pytest

from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.properties import UNIQUE_KEY
from tests.passing_time import Clock


@pytest.fixture
def clock() -> Clock:
    """Returns the clock of tests/component/conftest.py, which is not loaded under Windows: it needs the demo's libraries."""
    return Clock()


@pytest.fixture
def half() -> Message:
    """Returns a half message as the local transaction receives it."""
    return Message.of("orders", "order 1").with_properties({UNIQUE_KEY: "A" * 32})


@pytest.fixture
def delivered(half: Message) -> MessageExt:
    """Returns the same message as a consumer receives it."""
    return MessageExt(
        topic=half.topic,
        body=half.body,
        properties=half.properties,
        broker_name="broker-a",
        queue_id=0,
        queue_offset=0,
        commit_log_offset=0,
        store_size=100,
        sys_flag=0,
        body_crc=0,
        born_timestamp=0,
        born_host="127.0.0.1:1",
        store_timestamp=0,
        store_host="127.0.0.1:2",
        reconsume_times=0,
        prepared_transaction_offset=0,
        offset_message_id="B" * 32,
    )
