"""Tests that a repair fixes every kind of damage that a program can repair, in the data of real services.

After the repair, the reconciliation finds the data consistent.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import httpx
import pytest

from demo.processes import Processes
from demo.system import QUICK_CHECKS, System
from order_messages.order_created import TAG, TOPIC, OrderCreated, OrderedItem
from pipelines.sources.logs.queue_ranges import consumer_offsets, queue_ranges
from rocketmq_broker.client import LocalTransactionState, Producer, TransactionProducer
from rocketmq_broker.message import Message, properties, topics
from tests.e2e.clients import PATIENT, running
from tests.e2e.tool import Tool
from tests.foreign.spark.test_reconcile_command import PROJECT, pipelines
from tests.unit.testing.listeners import AsSent
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless"),
]

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
CENTS = 1250
GROUP = "credit_service"


class Shop:
    """The running system, and functions that break its data."""

    def __init__(self, system: System, broker_address: str) -> None:
        self.system = system
        self.broker_address = broker_address

    def place(self, customer: str = "ada") -> str:
        wanted = {"customer": customer, "items": [{"name": "book", "quantity": 2, "price_cents": CENTS // 2}]}
        answer = httpx.post(f"{self.system.order_url}/orders", json=wanted, timeout=60)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["order"]["order_id"])

    def placed_at_ms(self) -> int:
        """Returns the time of the first order, from which the others are copied."""
        with closing(sqlite3.connect(self.system.home / "orders.db", timeout=30)) as database:
            return int(database.execute("SELECT created_at_ms FROM orders ORDER BY id LIMIT 1").fetchone()[0])

    def copy_order(self, model: str, order_id: str, transaction_id: str) -> None:
        """Writes a copy of the order `model` under another id, as the service would write it."""
        with closing(sqlite3.connect(self.system.home / "orders.db", timeout=30)) as database, database:
            for table, changed in (
                ("orders", {"id": None, "order_id": order_id, "idempotency_key": None}),
                ("order_items", {"id": None, "order_id": order_id}),
                ("transactions", {"order_id": order_id, "transaction_id": transaction_id}),
            ):
                rows = database.execute(f"SELECT * FROM {table} WHERE order_id = ?", (model,))
                names = [column[0] for column in rows.description]
                for row in rows.fetchall():
                    values = [changed.get(name, value) for name, value in zip(names, row, strict=True)]
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def in_credits(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.system.home / "credits.db", timeout=30)) as database, database:
            return database.execute(statement, values).fetchall()

    def add_credit(self, order_id: str, customer: str, cents: int) -> None:
        """Adds a credit that no message caused. The balance does not include it."""
        now_ms = time.time_ns() // 1_000_000
        columns = "(order_id, customer, points, amount_cents, message_id, created_at_ms)"
        self.in_credits(
            f"INSERT INTO credits {columns} VALUES (?, ?, ?, ?, '', ?)", order_id, customer, cents // 100, cents, now_ms
        )

    def lose_credit(self, order_id: str) -> None:
        self.in_credits("DELETE FROM credits WHERE order_id = ?", order_id)

    def credited(self) -> set[object]:
        return {row[0] for row in self.in_credits("SELECT order_id FROM credits WHERE kind = 'credit'")}

    def is_consumed(self) -> bool:
        done = consumer_offsets(self.broker_address, GROUP, TOPIC) or {}
        return all(done.get(part.queue_id, 0) >= part.end for part in queue_ranges(self.broker_address, [TOPIC]))


def message_of(shop: Shop, order_id: str) -> Message:
    """Returns the order's message as the order service sends it."""
    placed_at_ms = shop.placed_at_ms()
    items = (OrderedItem(name="book", quantity=2),)
    order = OrderCreated(
        order_id=order_id, customer="ada", total_cents=CENTS, currency="EUR", created_at_ms=placed_at_ms, items=items
    )
    return Message.of(TOPIC, order.encode(), tags=TAG, keys=[order_id])


async def send(shop: Shop, order_id: str, decision: LocalTransactionState) -> str:
    """Sends the order's message as the order service does, with the given decision. Returns the transaction id."""
    message = message_of(shop, order_id)
    producer = TransactionProducer("order_service", AsSent(), namesrv_addr=shop.system.namesrv_addr, **PATIENT)
    tool = Tool("--namesrv-addr", shop.system.namesrv_addr)
    async with running(producer):
        sent = await producer.send_message_in_transaction(message, decision)
        if decision is UNKNOWN:
            await tool.wait_for("discarded")
    return str(sent.message_id)


async def bury(shop: Shop, order_id: str, transaction_id: str) -> None:
    """Sends the order's message to the retry topic, as the group's consumer would after too many redeliveries.

    Returns when the broker has stored the message as a dead letter.
    """
    message = message_of(shop, order_id)
    returned = {properties.UNIQUE_KEY: transaction_id, properties.RETRY_TOPIC: TOPIC, properties.RECONSUME_TIME: "2"}
    more = {properties.MAX_RECONSUME_TIMES: "1", properties.DELAY_TIME_LEVEL: "1"}
    changed = MappingProxyType({**message.properties, **returned, **more})
    async with running(Producer("tests", namesrv_addr=shop.system.namesrv_addr, **PATIENT)) as producer:
        await producer.send(replace(message, topic=topics.retry_topic(GROUP), properties=changed))
    await Tool("--namesrv-addr", shop.system.namesrv_addr).wait_for("dead-letters", "list", GROUP)


def break_it_in_every_way(shop: Shop) -> dict[str, str]:
    """Breaks orders in every way that a program can repair. Returns the expected plan for each order."""
    fine, lost = shop.place(), shop.place("bob")
    shop.copy_order(fine, "dead", dead := asyncio.run(send(shop, "dead", COMMIT)))
    wait_until(lambda: shop.credited() == {fine, lost, "dead"})
    asyncio.run(bury(shop, "dead", dead))
    shop.system.credit_service.stop()  # a running one has the message of a result delivered again that its database lacks
    shop.lose_credit(lost)
    shop.lose_credit("dead")
    shop.system.credit_service.start()
    shop.copy_order(fine, "unannounced", "T-unannounced")
    for order_id, decision in (("rolled-back", ROLLBACK), ("discarded", UNKNOWN)):
        shop.copy_order(fine, order_id, asyncio.run(send(shop, order_id, decision)))
    shop.add_credit("parked", "ada", 1)
    shop.copy_order(fine, "parked", asyncio.run(send(shop, "parked", COMMIT)))
    wait_until(lambda: shop.in_credits("SELECT status FROM rocketmq_inbox") == [("PARKED",)])
    shop.lose_credit("parked")
    shop.add_credit("invented", "carol", CENTS)
    shop.in_credits("UPDATE balances SET points = 99 WHERE customer = 'ada'")
    wait_until(shop.is_consumed)
    return {
        lost: "publish", "unannounced": "publish", "rolled-back": "publish", "discarded": "resume", "dead": "retry",
        "invented": "reverse", "ada": "rebuild_balance", "bob": "rebuild_balance", "carol": "rebuild_balance",
    }  # fmt: skip


@pytest.fixture
def shop(processes: Processes, tmp_path: Path) -> Shop:
    (tmp_path / "key").write_text("secret\n")
    system = System(processes, tmp_path / "shop", broker_settings={**QUICK_CHECKS, "transactionCheckMax": "1"})
    system.credit_service.environment["CREDIT_REPAIR_KEY_FILE"] = str(tmp_path / "key")
    system.start()
    settings = (system.home / "broker" / "broker.conf").read_text()
    port = next(line.partition("=")[2] for line in settings.splitlines() if line.startswith("listenPort="))
    return Shop(system, f"127.0.0.1:{port}")


def test_a_history_broken_in_every_way_is_repaired(shop: Shop, tmp_path: Path) -> None:
    wanted = break_it_in_every_way(shop)
    environment = {
        **shop.system.environment,
        "CREDIT_SERVICE_URL": shop.system.credit_url,
        "CREDIT_REPAIR_KEY_FILE": str(tmp_path / "key"),
    }

    def run(*arguments: str) -> tuple[int, str]:
        done = pipelines(*arguments, cwd=tmp_path, **environment)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, done.stdout

    at_once = ("--grace-seconds", "0")
    code, told = run("repair", "--plan", "plan.json", "--broker", shop.broker_address, *at_once)
    assert (code, told.splitlines()[-1]) == (1, "Plan: 9 steps, 1 for a person: plan.json"), told
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert {step["subject"]: step["action"] for step in plan["steps"]} == wanted
    (parked,) = plan["for_a_person"]
    assert (parked["subject"], parked["finding"], parked["cause"]) == ("parked", "missing_credit", "parked")
    assert "python -m credit_service inbox retry" in parked["advice"]
    assert len(shop.credited()) == 2, "a plan changes nothing"

    code, told = run("repair", "--apply", "plan.json")
    summary = "9 done, 0 done before, 0 failed, 1 for a person. Audit: plan.json.audit.jsonl"
    assert (code, told.splitlines()[-1]) == (1, summary), told
    wait_until(lambda: set(wanted) - {"ada", "bob", "carol"} <= shop.credited())
    assert "parked" not in shop.credited(), "no step credits what waits for a person"
    retry = [sys.executable, "-m", "credit_service", "inbox", "retry"]
    inherited = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'broker'}"}
    subprocess.run(retry, cwd=tmp_path, env={**inherited, **environment}, check=True, timeout=60)
    wait_until(lambda: "parked" in shop.credited())
    ledger = shop.in_credits("SELECT order_id, kind, points FROM credits ORDER BY id")

    code, told = run("repair", "--apply", "plan.json")
    summary = "0 done, 9 done before, 0 failed, 1 for a person. Audit: plan.json.audit.jsonl"
    assert (code, told.splitlines()[-1]) == (1, summary), told
    assert len((tmp_path / "plan.json.audit.jsonl").read_text().splitlines()) == 2 * 2 * 9

    code, told = run("reconcile", "--store", str(shop.system.broker_store), *at_once)
    assert code == 0, told
    assert "consistent: 7 orders, 8 credits, 0 lost, 0 doubled" in told
    assert shop.in_credits("SELECT order_id, kind, points FROM credits ORDER BY id") == ledger
