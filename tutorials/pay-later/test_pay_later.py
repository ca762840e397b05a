"""Tests an order that is paid later: minutes of UNKNOWN, a deadline, and outages of the order service."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from order_service.service_layer.paying import ImpossibleNow
from rocketmq_broker.testing import SyncRocketMQ

Shop: Any = runpy.run_path(str(Path(__file__).with_name("shop.py")))["Shop"]


@pytest.fixture
def shop(rocketmq: SyncRocketMQ, tmp_path: Path) -> Iterator[Any]:
    opened = Shop(rocketmq, tmp_path)
    yield opened
    opened.engine.dispose()


def test_while_nobody_pays_each_check_back_is_answered_unknown(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=5)
    assert shop.state(order_id) == "AWAITING_PAYMENT"
    assert shop.checks(order_id) == 5
    assert rocketmq.messages("orders") == []


def test_the_next_check_back_tells_of_the_payment(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=5)
    shop.pay(order_id)
    assert len(rocketmq.pending(order_id)) == 1
    rocketmq.advance(minutes=1)
    rocketmq.committed(order_id)


def test_the_first_check_back_after_the_deadline_ends_the_order(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=12)
    assert shop.state(order_id) == "EXPIRED"
    rocketmq.rolled_back(order_id)
    with pytest.raises(ImpossibleNow, match="EXPIRED"):
        shop.pay(order_id)


def test_an_order_that_was_paid_in_time_is_delivered_although_the_service_is_away_at_the_deadline(
    rocketmq: SyncRocketMQ, shop: Any
) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=2)
    shop.pay(order_id)
    shop.close()
    rocketmq.advance(hours=2)
    assert shop.checks(order_id) == 2  # no producer was online, so no check-back was counted
    shop.open()
    rocketmq.advance(minutes=2)
    rocketmq.committed(order_id)


def test_an_order_whose_deadline_passes_while_the_service_is_away_ends_when_it_is_back(rocketmq: SyncRocketMQ, shop: Any) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=2)
    shop.close()
    rocketmq.advance(hours=2)
    assert shop.state(order_id) == "AWAITING_PAYMENT"
    shop.open()
    rocketmq.advance(minutes=2)
    assert shop.state(order_id) == "EXPIRED"
    rocketmq.rolled_back(order_id)


def test_a_payment_after_the_deadline_is_refused_although_no_check_back_has_ended_the_order(
    rocketmq: SyncRocketMQ, shop: Any
) -> None:
    order_id = shop.order()
    rocketmq.advance(minutes=2)
    rocketmq.crash()
    rocketmq.advance(minutes=9)
    with pytest.raises(ImpossibleNow, match="EXPIRED"):
        shop.pay(order_id)
    rocketmq.restart()
    rocketmq.advance(minutes=2)
    rocketmq.rolled_back(order_id)
