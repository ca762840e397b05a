"""Tests that the monolith stores both rows or none, and that the split programs do so only with a transactional message."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from rocketmq_broker.testing import SyncRocketMQ
from tutorials.recipes.monolith.split import TOPIC, OrderListener, credit_listener, in_steps, in_transaction, message_of
from tutorials.recipes.monolith.whole import Base, Credit, Order, Placing, create_app, store

SMALL, TOO_LARGE = {"order_id": "small", "points": 100}, {"order_id": "large", "points": 5000}


@pytest.fixture
def orders(tmp_path: Path) -> Engine:
    return made(tmp_path, "orders")


@pytest.fixture
def credits(tmp_path: Path) -> Engine:
    return made(tmp_path, "credits")


def made(folder: Path, name: str) -> Engine:
    engine = create_engine(f"sqlite:///{folder}/{name}.db")
    Base.metadata.create_all(engine)
    return engine


def rows(engine: Engine, table: type[Order] | type[Credit]) -> list[str]:
    with Session(engine) as session:
        return list(session.scalars(select(table.order_id)))


def sending(rocketmq: SyncRocketMQ, credits: Engine) -> Placing:
    """Returns a step that sends the message to a running consumer."""
    producer = rocketmq.producer("split-orders")
    producer.create_topic(TOPIC)
    rocketmq.consumer("split-credits", TOPIC, credit_listener(credits))
    return lambda order: bool(producer.send(message_of(order)))


def lose_the_process(order: object) -> bool:
    raise ConnectionError("the process died before this step")


def transactions(rocketmq: SyncRocketMQ, orders: Engine) -> Placing:
    return in_transaction(rocketmq.transaction_producer("split-orders", OrderListener(orders)).send_message_in_transaction)


def test_the_monolith_has_both_or_none(orders: Engine) -> None:
    customer = create_app(store(orders, Order, Credit)).test_client()
    assert customer.put("/orders/small", json={"points": 100}).status_code == 201
    assert customer.put("/orders/large", json={"points": 5000}).status_code == 500
    assert rows(orders, Order) == rows(orders, Credit) == ["small"]


def test_store_then_send_breaks_when_the_process_dies_between(orders: Engine, credits: Engine) -> None:
    with pytest.raises(ConnectionError):
        in_steps(store(orders, Order), lose_the_process)(SMALL)
    assert (rows(orders, Order), rows(credits, Credit)) == (["small"], [])


def test_send_then_store_breaks_when_the_database_refuses(rocketmq: SyncRocketMQ, orders: Engine, credits: Engine) -> None:
    with pytest.raises(IntegrityError):
        in_steps(sending(rocketmq, credits), store(orders, Order))(TOO_LARGE)
    rocketmq.wait_until(lambda: rows(credits, Credit) == ["large"])
    assert rows(orders, Order) == []


def test_in_a_transaction_a_lost_commit_and_a_refused_order_agree_in_both_databases(
    rocketmq: SyncRocketMQ, orders: Engine, credits: Engine
) -> None:
    sending(rocketmq, credits)
    place = transactions(rocketmq, orders)
    rocketmq.lose_next_decision()
    assert place(SMALL)
    assert place(TOO_LARGE) is False
    rocketmq.advance(minutes=2)
    assert rows(orders, Order) == rows(credits, Credit) == ["small"]
    rocketmq.rolled_back("large")


def test_a_message_that_comes_twice_is_credited_once(rocketmq: SyncRocketMQ, orders: Engine, credits: Engine) -> None:
    rocketmq.as_apache()  # this broker delivers the message again after a second COMMIT
    sending(rocketmq, credits)
    with rocketmq.hold_check_backs():
        rocketmq.lose_next_decision()
        transactions(rocketmq, orders)(SMALL)
        rocketmq.advance(minutes=2)
    rocketmq.advance(minutes=2)
    assert rows(credits, Credit) == ["small"]


KILLED_AFTER_ITS_LOCAL_COMMIT = """
import os, signal
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session
from tutorials.recipes.monolith.split import OrderListener, in_transaction
from rocketmq_broker.client import EventLoopThread, TransactionProducer

event.listen(Session, "after_commit", lambda session: os.kill(os.getpid(), signal.SIGKILL))
with EventLoopThread() as loop:
    producer = TransactionProducer("split-orders", OrderListener(create_engine(os.environ["DATABASE_URL"])))
    with loop.running(producer):
        send = producer.send_message_in_transaction
        in_transaction(lambda message, order: loop.run(send(message, order)))({"order_id": "small", "points": 100})
"""


def test_an_order_stored_before_kill_9_gets_its_credit(rocketmq: SyncRocketMQ, orders: Engine, credits: Engine) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.namesrv_addr, "DATABASE_URL": str(orders.url)}
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_ITS_LOCAL_COMMIT], env=environment, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    sending(rocketmq, credits)
    assert rows(orders, Order) == ["small"]
    assert rows(credits, Credit) == []
    transactions(rocketmq, orders)
    rocketmq.advance(minutes=2)
    rocketmq.wait_until(lambda: rows(credits, Credit) == ["small"])
