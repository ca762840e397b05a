"""An order that the credit database does not take, through every process: refused, cancelled, and settled in the ledger."""

import sqlite3
from contextlib import closing

import httpx
import pytest

from demo.system import System
from tests.e2e.clients import PATIENT
from tests.e2e.test_out_of_stock import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
REFUSED_CENTS = 666
REFUSE = f"""
    CREATE TRIGGER refuse BEFORE INSERT ON credits WHEN NEW.amount_cents = {REFUSED_CENTS}
    BEGIN SELECT RAISE(ABORT, 'no such amount'); END
"""


def order(system: System, price_cents: int, customer: str = "ada") -> str:
    items = [{"name": "tea", "quantity": 1, "price_cents": price_cents}]
    answer = httpx.post(f"{system.order_url}/orders", json={"customer": customer, "items": items}, timeout=60)
    return str(answer.raise_for_status().json()["order"]["order_id"])


def entries(system: System, order_id: str) -> list[tuple[str, int]]:
    answer = httpx.get(f"{system.credit_url}/orders/{order_id}/credit", timeout=30)
    return [(entry["kind"], entry["points"]) for entry in answer.json()["entries"]] if answer.is_success else []


def test_an_order_that_cannot_be_credited_is_cancelled_where_the_setting_says_so(system: System) -> None:
    system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
    system.credit_service.environment["CREDIT_CANCEL_REFUSED"] = "true"
    system.start()
    with closing(sqlite3.connect(system.home / "credits.db", timeout=60)) as credits:
        credits.execute(REFUSE)
    refused, taken = order(system, REFUSED_CENTS), order(system, 500)

    def state(order_id: str) -> tuple[str, str | None]:
        found = httpx.get(f"{system.order_url}/orders/{order_id}", timeout=30).json()
        return found["state"], found["ended_because"]

    def is_cancelled() -> bool:
        """It is the order's fault once another order passes that came after it."""
        order(system, 100, customer="bob")
        return state(refused) == ("CANCELLED", "not credited: the ledger does not take it")

    wait_until(is_cancelled)
    wait_until(lambda: entries(system, taken) == [("credit", 5)])
    assert entries(system, refused) == [("credit", 0), ("reversal", 0)]
    assert state(taken) == ("PLACED", None)
    assert httpx.get(f"{system.credit_url}/customers/ada/credit", timeout=30).json()["points"] == 5
