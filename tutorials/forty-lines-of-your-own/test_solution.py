"""Tests the solution of the exercise: a shop that rolls back orders that cost nothing."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.testing import RocketMQ

shop = runpy.run_path(str(Path(__file__).with_name("shop.py")))
Orders: Any = shop["Orders"]


class CarefulOrders(Orders):  # type: ignore[misc]
    """A shop that rolls back orders that cost nothing."""

    async def execute_local_transaction(self, message: Message, thing: object) -> LocalTransactionState:
        if thing == "a free lunch":
            return LocalTransactionState.ROLLBACK_MESSAGE
        answer: LocalTransactionState = await super().execute_local_transaction(message, thing)
        return answer


async def test_a_free_lunch_is_rolled_back_at_once_and_never_checked(
    rocketmq: RocketMQ, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = await rocketmq.transaction_producer("shop", CarefulOrders())
    await producer.create_topic("orders")
    await rocketmq.consumer("credits", "orders", shop["credit"])
    for key, thing in {"order-1": "a book", "order-2": "a free lunch"}.items():
        await producer.send_message_in_transaction(Message.of("orders", thing, keys=[key]), thing)
    await rocketmq.rolled_back("order-2")
    await rocketmq.advance(minutes=2)
    assert capsys.readouterr().out == "check 1 finds ('a book',)\ncredit for a book\n"
