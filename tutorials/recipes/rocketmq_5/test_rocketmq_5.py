"""Tests that an order gets one credit with Apache's client, even if its COMMIT is lost or its program is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import sessionmaker

from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.testing import SyncRocketMQ
from tutorials.recipes.rocketmq_5 import credits, shop

SLOW_SHOP = """
import os, signal, sys
from sqlalchemy import create_engine
from tutorials.recipes.rocketmq_5 import shop

engine = create_engine(sys.argv[2])
producer = shop.started_producer(sys.argv[1], engine)
begin = producer.begin_transaction

def never_commits():
    transaction = begin()
    transaction.commit = lambda: os.kill(os.getpid(), signal.SIGKILL)
    return transaction

producer.begin_transaction = never_commits
shop.place(producer, engine, "order-1")
"""


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"grpcServerPort": 0, "transactionTimeOut": 20_000}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url)
    shop.Base.metadata.create_all(engine)
    credits.Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def producer(rocketmq: SyncRocketMQ, engine: Engine) -> Iterator[Any]:
    producer = shop.started_producer(str(rocketmq.grpc_endpoint), engine)
    yield producer
    producer.shutdown()


@pytest.fixture
def credited(rocketmq: SyncRocketMQ, engine: Engine) -> Iterator[Callable[[], list[str]]]:
    """Yields a function that receives all available messages, and returns the credited orders."""
    consumer, inbox = credits.started_consumer(str(rocketmq.grpc_endpoint)), Inbox(sessionmaker(engine), "credits")

    def credited() -> list[str]:
        credits.receive(consumer, inbox)
        inbox.drain(credits.give, once=True)
        with engine.connect() as connection:
            return list(connection.execute(select(credits.Credit.order_id)).scalars())

    yield credited
    consumer.shutdown()


def test_an_order_gets_one_credit_although_its_commit_is_lost(
    rocketmq: SyncRocketMQ, engine: Engine, producer: Any, credited: Callable[[], list[str]]
) -> None:
    rocketmq.lose_next_decision()
    shop.place(producer, engine, "order-1")
    assert len(rocketmq.pending()) == 1
    rocketmq.advance(seconds=20)
    rocketmq.wait_until(lambda: not rocketmq.pending())
    assert credited() == ["order-1"]
    shop.place(producer, engine, "order-2")
    assert credited() == ["order-1", "order-2"]


def test_a_program_that_is_killed_before_its_commit_leaves_the_answer_in_its_database(
    rocketmq: SyncRocketMQ, url: str, engine: Engine, credited: Callable[[], list[str]]
) -> None:
    killed = subprocess.run([sys.executable, "-c", SLOW_SHOP, str(rocketmq.grpc_endpoint), url], env=os.environ, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    producer = shop.started_producer(str(rocketmq.grpc_endpoint), engine)
    rocketmq.advance(seconds=20)
    rocketmq.wait_until(lambda: not rocketmq.pending())
    assert credited() == ["order-1"]
    producer.shutdown()
