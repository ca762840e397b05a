"""Tests the solution of the exercise: Apache's client resends a half message with the same id after a lost response."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest

from rocketmq_broker.testing import SyncRocketMQ

spec = importlib.util.spec_from_file_location("shop_with_rocketmq_5", Path(__file__).with_name("shop.py"))
assert spec is not None
assert spec.loader is not None
chapter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chapter)


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"grpcServerPort": 0, "transactionTimeOut": 20_000}


def test_a_lost_answer_makes_two_half_messages_of_one_transaction(rocketmq: SyncRocketMQ) -> None:
    orders = chapter.Orders()
    configuration = chapter.ClientConfiguration(rocketmq.grpc_endpoint, chapter.Credentials(), request_timeout=1)
    producer = chapter.Producer(configuration, ("orders",), checker=orders)
    producer.startup()
    rocketmq.lose_next_answer()
    transaction = producer.begin_transaction()
    book = producer.send(chapter.message("book"), transaction)
    orders.store(book.message_id, "book")
    transaction.commit()
    assert len(rocketmq.pending("book")) == 1
    rocketmq.advance(seconds=20)
    rocketmq.wait_until(lambda: not rocketmq.pending())
    assert [one.message_id for one in rocketmq.messages("orders")] == [book.message_id, book.message_id]
    producer.shutdown()
