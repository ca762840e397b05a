"""Tests that each order gets one credit after a lost COMMIT, a kill and a second delivery."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from flask.testing import FlaskClient
from sqlmodel import Session, create_engine, select

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageExt
from rocketmq_broker.testing import SyncRocketMQ
from tutorials.recipes.order_credit import credits, orders

ORDER = {"customer": "ada", "total_cents": 2599}


@pytest.fixture(autouse=True)
def _surroundings(rocketmq: SyncRocketMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NAMESRV_ADDR", rocketmq.namesrv_addr)
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/orders.db")
    monkeypatch.setenv("CREDITS_URL", f"sqlite:///{tmp_path}/credits.db")
    credits.engine.cache_clear()
    orders.Base.metadata.create_all(create_engine(os.environ["DATABASE_URL"]))
    credits.Base.metadata.create_all(credits.engine())
    rocketmq.producer("operators").create_topic(orders.TOPIC)
    yield
    credits.engine.cache_clear()


@pytest.fixture
def customer() -> Iterator[FlaskClient]:
    app = orders.create_app()
    yield app.test_client()
    app.extensions["rocketmq"].stop()


def credited() -> list[tuple[str, int]]:
    """Runs the task twice, as Celery may do, and returns the credits."""
    credits.give_credits()
    credits.give_credits()
    with Session(credits.engine()) as session:
        return [(credit.order_id, credit.points) for credit in session.exec(select(credits.Credit))]


def place(customer: FlaskClient | httpx.Client, order: str, body: dict[str, object] = ORDER) -> int:
    return int(customer.put(f"/orders/{order}", json=body).status_code)


def another_service(rocketmq: SyncRocketMQ) -> None:
    """Starts the producer of another process in virtual time. This producer answers check-backs from the same database."""
    rocketmq.transaction_producer("order-credit", orders.OrderListener(create_engine(os.environ["DATABASE_URL"])))


def test_an_order_gets_one_credit_although_its_commit_is_lost(rocketmq: SyncRocketMQ, customer: FlaskClient) -> None:
    rocketmq.consumer("order-credits", orders.TOPIC, credits.listen)
    rocketmq.lose_next_decision()
    assert place(customer, "order-1") == 201
    customer.application.extensions["rocketmq"].stop()
    assert credited() == []
    another_service(rocketmq)
    rocketmq.advance(minutes=2)
    assert credited() == [("order-1", 25)]


def test_a_message_that_is_delivered_again_or_whose_task_fails_is_credited_once(
    rocketmq: SyncRocketMQ, customer: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered: list[MessageExt] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        delivered.extend(messages)
        return credits.listen(messages, context)

    rocketmq.consumer("order-credits", orders.TOPIC, listen)
    assert place(customer, "order-1") == 201
    rocketmq.advance(seconds=5)
    with monkeypatch.context() as broken:
        broken.setattr(credits, "Credit", None)
        credits.give_credits()
    assert (credits.inbox.state().failed, credits.inbox.state().waiting) == (1, 1)
    credits.inbox.put(delivered)
    deadline = time.monotonic() + 60
    while not credited() and time.monotonic() < deadline:  # the failed message waits one second
        time.sleep(0.05)
    assert credited() == [("order-1", 25)]
    credits.inbox.put(delivered)
    assert credited() == [("order-1", 25)]


def test_an_order_placed_again_gets_one_credit_and_another_with_its_id_is_refused(
    rocketmq: SyncRocketMQ, customer: FlaskClient
) -> None:
    rocketmq.consumer("order-credits", orders.TOPIC, credits.listen)
    assert [place(customer, "order-1"), place(customer, "order-1")] == [201, 201]
    assert place(customer, "order-1", {**ORDER, "total_cents": 1}) == 409
    customer.application.extensions["rocketmq"].stop()
    another_service(rocketmq)
    rocketmq.advance(minutes=2)
    assert credited() == [("order-1", 25)]
    assert [one.state for one in rocketmq.decided()].count("rolled back") == 2


def test_a_service_that_is_killed_before_its_commit_arrives_leaves_the_answer_in_its_database(rocketmq: SyncRocketMQ) -> None:
    rocketmq.consumer("order-credits", orders.TOPIC, credits.listen)
    rocketmq.lose_next_decision()
    command = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0", "tutorials.recipes.order_credit.orders:create_app()"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as shop:
        assert shop.stderr is not None
        try:
            address = next(found[1] for line in shop.stderr if (found := re.search(r"Listening at: (http://\S+)", line)))
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as customer:
                assert place(customer, "order-1") == 201
        finally:
            os.killpg(shop.pid, signal.SIGKILL)
    another_service(rocketmq)
    rocketmq.advance(minutes=2)
    assert credited() == [("order-1", 25)]
