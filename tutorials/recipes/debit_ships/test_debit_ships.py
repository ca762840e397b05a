"""Tests that a stored debit is shipped once: after a lost COMMIT and after a kill. A low balance stores and ships nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rocketmq_broker.testing import SyncRocketMQ
from tutorials.recipes.debit_ships.application import create_app

ORDER = {"order_id": "order-1", "customer": "ada", "price": 70}


@pytest.fixture(autouse=True)
def _finds_the_broker(rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", rocketmq.namesrv_addr)
    rocketmq.producer("operators").create_topic("debits")


def shipped(customer: TestClient) -> bool:
    return bool(customer.get("/shipments/order-1").status_code == 200)


def test_a_lost_commit_is_settled_by_a_check_back_and_shipped_once(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    with TestClient(create_app(str(tmp_path))) as customer:
        customer.put("/accounts/ada/100")
        rocketmq.lose_next_decision()
        assert customer.post("/orders", json=ORDER).status_code == 201
        assert not shipped(customer)
        rocketmq.advance(minutes=2)
        rocketmq.wait_until(lambda: shipped(customer))
        assert customer.post("/orders", json={**ORDER, "order_id": "order-2"}).status_code == 402
        rocketmq.rolled_back("order-2")


def test_an_order_without_an_account_is_rolled_back_and_not_shipped(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    with TestClient(create_app(str(tmp_path))) as customer:
        assert customer.post("/orders", json=ORDER).status_code == 402
        rocketmq.rolled_back("order-1")
        assert not shipped(customer)


KILLED_AFTER_ITS_LOCAL_COMMIT = """
import os, signal, sys
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.orm import Session
from tutorials.recipes.debit_ships.application import create_app

with TestClient(create_app(sys.argv[1])) as customer:
    customer.put("/accounts/ada/100")
    event.listen(Session, "after_commit", lambda session: os.kill(os.getpid(), signal.SIGKILL))
    customer.post("/orders", json={"order_id": "order-1", "customer": "ada", "price": 70})
"""


def test_what_was_debited_before_kill_9_is_shipped_by_the_next_process(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_ITS_LOCAL_COMMIT, str(tmp_path)], env=os.environ, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert [one.keys for one in rocketmq.pending()] == [("order-1",)]
    with TestClient(create_app(str(tmp_path))) as customer:
        rocketmq.advance(minutes=2)
        rocketmq.wait_until(lambda: shipped(customer))
