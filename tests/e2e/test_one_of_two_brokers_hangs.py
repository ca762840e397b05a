"""One of two brokers hangs: orders go to the other within their time, and /readyz, /healthz and an order say one thing.

`pytest -s` prints the figures.
"""

import asyncio
import collections
import os
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from demo.processes import Processes
from demo.system import System
from order_messages import order_created
from rocketmq_broker.client import Producer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
ORDERS = 40


def test_each_order_is_taken_while_one_of_two_brokers_hangs_and_health_names_it(processes: Processes, tmp_path: Path) -> None:
    system = System(processes, tmp_path / "system", brokers=2)
    system.start()
    asyncio.run(make_topic_on_both(system.namesrv_addr))
    placed: list[str] = []

    def place() -> tuple[int, float]:
        began_s = time.monotonic()
        answer = httpx.post(f"{system.order_url}/orders", json=ORDER, timeout=60)
        if answer.is_success:
            placed.append(answer.headers["Location"].rpartition("/")[2])
        return answer.status_code, time.monotonic() - began_s

    for _ in range(10):
        assert place()[0] == 201
    hanging = broker_of(system, "broker-b")
    os.kill(hanging, signal.SIGSTOP)
    try:
        answers = [place() for _ in range(ORDERS)]
        ready = httpx.get(f"{system.order_url}/readyz", timeout=30)
        health = httpx.get(f"{system.order_url}/healthz", timeout=30)
    finally:
        os.kill(hanging, signal.SIGCONT)
    statuses = collections.Counter(status for status, _ in answers)
    print(
        f"\n{ORDERS} orders: {dict(statuses)}, the slowest {max(s for _, s in answers):.1f} s; readyz {ready.status_code}",
        end=", ",
    )
    print(f"healthz {health.status_code} {health.json()['status']}: {health.json()['attention']}")
    assert (statuses, ready.status_code, health.status_code) == ({201: ORDERS}, 200, 200)
    assert any("broker broker-b stores nothing: " in line for line in health.json()["attention"]), health.text
    deadline_s = time.monotonic() + 60
    while lost := [one for one in placed if not httpx.get(f"{system.credit_url}/orders/{one}/credit").is_success]:
        assert time.monotonic() < deadline_s, f"{len(lost)} orders have no credit"
        time.sleep(0.2)


async def make_topic_on_both(namesrv_addr: str) -> None:
    """The first order would make it on one broker only."""
    async with Producer("test_one_of_two", namesrv_addr=namesrv_addr) as producer:
        await producer.create_topic(order_created.TOPIC)


def broker_of(system: System, name: str) -> int:
    """The process of that broker of the cluster."""
    (pid,) = [
        child.pid
        for child in psutil.Process(system.broker.pid).children()
        if any(argument.endswith(f"{name}.conf") for argument in child.cmdline())
    ]
    return pid
