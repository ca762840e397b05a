"""The saga's unhappy path through every process: credited, found short, cancelled, reversed."""

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import Processes, answers
from demo.system import System
from tests.e2e.clients import PATIENT
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


class Shop:
    """Orders, stock and points of one customer, over HTTP."""

    def __init__(self, processes: Processes, system: System, folder: Path) -> None:
        (port,) = free_ports(1)
        self.system = system
        self.inventory_url = f"http://127.0.0.1:{port}"
        system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
        self.inventory = processes.add(
            "inventory_service",
            [sys.executable, "-m", "inventory_service"],
            environment={
                **system.environment,
                "INVENTORY_DATABASE_URL": f"sqlite:///{folder}/inventory.db",
                "INVENTORY_HTTP_PORT": str(port),
                "INVENTORY_SEND_TIMEOUT_MS": str(PATIENT["send_timeout_ms"]),
            },
            is_ready=answers(f"{self.inventory_url}/healthz"),
        )

    def set_stock(self, article: str, available: int) -> None:
        httpx.put(f"{self.inventory_url}/stock/{article}", json={"available": available}, timeout=30).raise_for_status()

    def stock(self, article: str) -> int:
        return int(httpx.get(f"{self.inventory_url}/stock/{article}", timeout=30).json()["available"])

    def order(self, article: str, quantity: int) -> str:
        items = [{"name": article, "quantity": quantity, "price_cents": 100}]
        answer = httpx.post(f"{self.system.order_url}/orders", json={"customer": "ada", "items": items}, timeout=60)
        return str(answer.raise_for_status().json()["order"]["order_id"])

    def cancel(self, order_id: str) -> None:
        httpx.post(f"{self.system.order_url}/orders/{order_id}/cancellation", json={}, timeout=60).raise_for_status()

    def state(self, order_id: str) -> tuple[str, str | None]:
        order = httpx.get(f"{self.system.order_url}/orders/{order_id}", timeout=30).json()
        return order["state"], order["ended_because"]

    def shipment(self, order_id: str) -> str | None:
        answer = httpx.get(f"{self.inventory_url}/orders/{order_id}/shipment", timeout=30)
        return str(answer.json()["state"]) if answer.is_success else None

    def points(self) -> list[int]:
        """Of the customer's entries, if the balance is their sum."""
        answer: Any = httpx.get(f"{self.system.credit_url}/customers/ada/credit", timeout=30).json()
        points = [entry["points"] for entry in answer.get("entries", [])]
        assert answer.get("points", 0) == sum(points)
        return sorted(points)


def test_an_order_that_is_short_is_cancelled_and_its_credit_reversed_also_after_a_crash(
    processes: Processes, system: System, tmp_path: Path
) -> None:
    shop = Shop(processes, system, tmp_path)
    system.start()
    shop.inventory.start()
    shop.set_stock("tea", 3)
    shipped = shop.order("tea", 2)
    wait_until(lambda: shop.shipment(shipped) == "SHIPPED")
    short = shop.order("tea", 2)
    wait_until(lambda: shop.state(short) == ("CANCELLED", "out of stock: tea"))
    wait_until(lambda: shop.points() == [-2, 2, 2])
    assert (shop.shipment(short), shop.stock("tea")) == ("SHORT", 1)

    shop.cancel(shipped)
    wait_until(lambda: shop.stock("tea") == 3)
    wait_until(lambda: shop.points() == [-2, -2, 2, 2])

    shop.inventory.kill()
    late = shop.order("tea", 4)
    wait_until(lambda: shop.points() == [-2, -2, 2, 2, 4])
    assert shop.state(late) == ("PLACED", None)
    shop.inventory.start()
    wait_until(lambda: shop.state(late) == ("CANCELLED", "out of stock: tea"))
    wait_until(lambda: sum(shop.points()) == 0)
    assert shop.stock("tea") == 3
