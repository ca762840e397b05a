"""Fixtures with messages as a transaction listener and a consumer receive them."""

import pytest

from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.properties import UNIQUE_KEY
from tests.passing_time import Clock

HALF = Message.of("orders", "order 1").with_properties({UNIQUE_KEY: "A" * 32})
PLACE = dict.fromkeys(("queue_id", "queue_offset", "commit_log_offset", "store_size", "sys_flag", "body_crc"), 0)
TIMES = dict.fromkeys(("born_timestamp", "store_timestamp", "reconsume_times", "prepared_transaction_offset"), 0)
HOSTS = {"broker_name": "broker-a", "born_host": "127.0.0.1:1", "store_host": "127.0.0.1:2", "offset_message_id": "B" * 32}
DELIVERED = MessageExt(topic="orders", body=HALF.body, properties=HALF.properties, **PLACE, **TIMES, **HOSTS)


@pytest.fixture
def clock() -> Clock:
    """Returns the clock of tests/component/conftest.py, which is not loaded under Windows: it needs the demo's libraries."""
    return Clock()


@pytest.fixture
def half() -> Message:
    """Returns a half message as the local transaction receives it."""
    return HALF


@pytest.fixture
def delivered() -> MessageExt:
    """Returns the same message as a consumer receives it."""
    return DELIVERED
