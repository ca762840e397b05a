"""Tests that a paid order gets one coupon after a lost COMMIT, a kill of a gunicorn worker, and a second delivery."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from flask.testing import FlaskClient
from sqlmodel import Session, create_engine, select

from rocketmq_broker.testing import SyncRocketMQ
from tutorials.recipes.pay_later import coupons, shop
from tutorials.recipes.pay_later.shop import TOPIC, Base, OrderListener, create_app


@pytest.fixture(autouse=True)
def _surroundings(rocketmq: SyncRocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NAMESRV_ADDR", rocketmq.namesrv_addr)
    for name in ("DATABASE_URL", "COUPONS_URL"):
        monkeypatch.setenv(name, f"sqlite:///{tmp_path}/{name}.db")
        Base.metadata.create_all(create_engine(os.environ[name]))
    coupons.celery.conf.update(task_always_eager=True, task_eager_propagates=True)
    coupons.engine.cache_clear()
    rocketmq.producer("operators").create_topic(TOPIC)
    yield
    coupons.engine.cache_clear()


@pytest.fixture
def customer() -> Iterator[FlaskClient]:
    app = create_app()
    yield app.test_client()
    app.extensions["rocketmq"].stop()


def coupons_of_orders() -> list[str]:
    with Session(coupons.engine()) as session:
        return list(session.exec(select(coupons.Coupon.order_id)))


def another_worker(rocketmq: SyncRocketMQ) -> None:
    """Starts the producer of another worker in virtual time.

    Its listener decides the killed worker's check-backs from the same database.
    """
    rocketmq.transaction_producer("pay-later", OrderListener(create_engine(os.environ["DATABASE_URL"])))


def place(customer: FlaskClient | httpx.Client) -> None:
    assert customer.put("/orders/order-1", json={"customer": "ada"}).status_code == 201


def pay(customer: FlaskClient | httpx.Client) -> int:
    return int(customer.put("/orders/order-1/payment").status_code)


def test_a_paid_order_gets_one_coupon_although_the_first_commit_is_lost(rocketmq: SyncRocketMQ, customer: FlaskClient) -> None:
    rocketmq.consumer("coupons", TOPIC, coupons.listen)
    place(customer)
    customer.application.extensions["rocketmq"].stop()
    another_worker(rocketmq)
    rocketmq.advance(minutes=2)
    assert coupons_of_orders() == []
    assert [pay(customer), pay(customer)] == [200, 409]
    rocketmq.lose_next_decision()
    rocketmq.advance(minutes=3)
    assert coupons_of_orders() == ["order-1"]
    assert "COMMIT was lost" in rocketmq.timeline("order-1")
    coupons.give_coupon.delay("order-1", "ada")
    assert coupons_of_orders() == ["order-1"]


def test_the_task_is_not_named_by_its_module_which_is_main_in_the_consumer_and_not_in_the_worker() -> None:
    assert coupons.give_coupon.name == "give_coupon"


def test_an_order_that_is_not_paid_in_time_cannot_be_paid_later_and_is_rolled_back(
    rocketmq: SyncRocketMQ, customer: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "PAYABLE_S", -1)
    place(customer)
    assert pay(customer) == 409  # before any check-back: the broker may have discarded the message
    customer.application.extensions["rocketmq"].stop()
    another_worker(rocketmq)
    rocketmq.advance(minutes=2)
    rocketmq.rolled_back("order-1")
    assert pay(customer) == 409


def test_a_worker_of_gunicorn_that_is_killed_leaves_its_orders_to_the_next_one(rocketmq: SyncRocketMQ) -> None:
    rocketmq.consumer("coupons", TOPIC, coupons.listen)
    command = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0", "tutorials.recipes.pay_later.shop:create_app()"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as shop:
        assert shop.stderr is not None
        try:
            told = iter(shop.stderr)
            address = next(found[1] for line in told if (found := re.search(r"Listening at: (http://\S+)", line)))
            worker = next(int(found[1]) for line in told if (found := re.search(r"Booting worker with pid: (\d+)", line)))
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as customer:
                place(customer)
                os.kill(worker, signal.SIGKILL)
                assert next(line for line in told if "Booting worker" in line)
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as customer:
                assert pay(customer) == 200
        finally:
            shop.terminate()
    another_worker(rocketmq)
    rocketmq.advance(minutes=3)
    assert coupons_of_orders() == ["order-1"]
