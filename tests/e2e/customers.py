"""Sends a customer's HTTP requests to the running services."""

import httpx

from demo.system import System

ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]


def place(system: System, customer: str, key: str | None = None) -> httpx.Response:
    """Places an order worth two points, and returns the response."""
    headers = {"Idempotency-Key": key} if key else {}
    body = {"customer": customer, "items": ITEMS}
    return httpx.post(f"{system.order_url}/orders", json=body, headers=headers, timeout=60)


def credit(system: System, customer: str) -> dict[str, object]:
    """Returns the customer's points and entries."""
    answer = httpx.get(f"{system.credit_url}/customers/{customer}/credit", timeout=30)
    return answer.json() if answer.status_code == httpx.codes.OK else {"points": 0, "entries": []}
