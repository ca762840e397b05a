"""Tests of the services with a real Apache RocketMQ. Only NAMESRV_ADDR differs."""

from pathlib import Path

import httpx
import pytest

from demo.books import ShopBooks
from demo.processes import Processes
from demo.system import System
from tests.foreign.apache.cluster import apache_rocketmq
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(500)]


def test_one_order_becomes_one_credit_on_apache_rocketmq_also_through_an_outage(processes: Processes, tmp_path: Path) -> None:
    with apache_rocketmq(tmp_path / "apache") as namesrv_addr:
        system = System(processes, tmp_path / "services", namesrv_addr=namesrv_addr)
        system.start_services()
        order = {"customer": "ada", "items": [{"name": "book", "quantity": 2, "price_cents": 1_299}]}

        placed = httpx.post(f"{system.order_url}/orders", json=order, headers={"Idempotency-Key": "once"}, timeout=30)

        assert placed.status_code == httpx.codes.CREATED, placed.text
        books = ShopBooks(system.order_database_url, system.credit_database_url)
        wait_until(lambda: books.credited() == 1)
        (credit,) = books.credits()
        assert (credit.order_id, credit.customer, credit.points) == (placed.json()["order"]["order_id"], "ada", 25)
        assert httpx.get(f"{system.credit_url}/customers/ada/credit", timeout=30).json()["points"] == 25

        system.worker.kill()
        assert httpx.post(f"{system.order_url}/orders", json=order, timeout=30).status_code == httpx.codes.CREATED
        wait_until(lambda: httpx.get(f"{system.credit_url}/healthz", timeout=30).json()["inbox"]["waiting"] == 1)
        system.worker.start()
        wait_until(lambda: books.credited() == 2)
        for process in reversed(system.services):
            process.stop()
