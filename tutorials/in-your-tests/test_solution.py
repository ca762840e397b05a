"""Tests the solution of the exercise: a half message whose response is lost leaves neither an order nor a message."""

import importlib.util
from pathlib import Path

import pytest

from rocketmq_broker.client import Message, SendFailed
from rocketmq_broker.testing import RocketMQ

spec = importlib.util.spec_from_file_location("test_lost_commit", Path(__file__).with_name("test_lost_commit.py"))
assert spec is not None
assert spec.loader is not None
chapter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chapter)


async def test_a_half_message_whose_answer_is_lost_is_rolled_back_by_a_check_back(rocketmq: RocketMQ) -> None:
    orders = chapter.Orders()
    producer = await rocketmq.transaction_producer("shop", orders)
    rocketmq.lose_next_answer()
    with pytest.raises(SendFailed):
        await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]), "alice")
    await rocketmq.advance(minutes=2)
    await rocketmq.rolled_back("order-1")
    assert orders.database.execute("SELECT COUNT(*) FROM orders").fetchone() == (0,)
