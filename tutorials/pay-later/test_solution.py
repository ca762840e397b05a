"""Tests the solution of the exercise: if payments may take half an hour, check-backs must continue for longer."""

import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.testing import SyncRocketMQ

Shop: Any = runpy.run_path(str(Path(__file__).with_name("shop.py")))["Shop"]


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"transactionCheckMax": 35}


@pytest.fixture
def shop(rocketmq: SyncRocketMQ, tmp_path: Path) -> Iterator[Any]:
    opened = Shop(rocketmq, tmp_path, deadline_minutes=30)
    yield opened
    opened.engine.dispose()


def test_a_payment_after_twenty_nine_minutes_is_in_time(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=29)
    shop.pay(order_id)
    rocketmq.advance(minutes=2)
    rocketmq.committed(order_id)


def test_an_order_that_nobody_pays_in_thirty_minutes_is_rolled_back_and_not_discarded(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=33)
    assert shop.state(order_id) == "EXPIRED"
    rocketmq.rolled_back(order_id)
