"""Orders that are paid later and orders that are cancelled, through every process."""

from typing import Any

import httpx
import pytest

from demo.system import System
from service_runtime.failing.armed_failpoints import EXIT_STATUS
from tests.e2e.clients import PATIENT
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]


@pytest.fixture
def system(system: System) -> System:
    system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
    return system


def post(system: System, path: str, body: dict[str, Any], status: int = 200) -> Any:
    answer = httpx.post(f"{system.order_url}{path}", json=body, timeout=60)
    assert answer.status_code == status, answer.text
    return answer.json()


def place(system: System, customer: str, payment: str = "now") -> str:
    order: dict[str, Any] = post(system, "/orders", {"customer": customer, "items": ITEMS, "payment": payment}, 201)["order"]
    return str(order["order_id"])


def state_of(system: System, order_id: str) -> str:
    return str(httpx.get(f"{system.order_url}/orders/{order_id}", timeout=30).json()["state"])


def entries(system: System, customer: str) -> list[tuple[str, int]]:
    """The customer's entries, the oldest first, if the balance is their sum."""
    answer = httpx.get(f"{system.credit_url}/customers/{customer}/credit", timeout=30)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return []
    credit = answer.json()
    found = [(entry["kind"], entry["points"]) for entry in reversed(credit["entries"])]
    assert credit["points"] == sum(points for _, points in found)
    return found


def test_a_cancelled_order_is_reversed_although_the_service_dies_before_it_sends_commit(system: System) -> None:
    """Its second local commit is the cancellation: check-back finds it in the database."""
    system.order_service.environment["FAILPOINTS"] = "exit-after-local-commit:every=2"
    system.start()
    order_id = place(system, "ada")
    wait_until(lambda: entries(system, "ada") == [("credit", 2)])
    with pytest.raises(httpx.TransportError):
        post(system, f"/orders/{order_id}/cancellation", {})
    assert system.order_service.wait(timeout_s=60) == EXIT_STATUS
    system.order_service.environment["FAILPOINTS"] = ""
    system.order_service.start()
    wait_until(lambda: sorted(entries(system, "ada")) == [("credit", 2), ("reversal", -2)])
    assert state_of(system, order_id) == "CANCELLED"
    assert post(system, f"/orders/{order_id}/cancellation", {})["order"]["state"] == "CANCELLED"


def test_an_order_is_credited_once_it_is_paid_and_never_if_its_deadline_passes(system: System) -> None:
    system.order_service.environment["ORDER_PAYMENT_DEADLINE_S"] = "20"
    system.start()
    unpaid, cancelled, paid = place(system, "eve", "later"), place(system, "bob", "later"), place(system, "ada", "later")
    post(system, f"/orders/{cancelled}/cancellation", {"reason": "too dear"})
    post(system, f"/orders/{paid}/payment", {})
    wait_until(lambda: entries(system, "ada") == [("credit", 2)])
    assert state_of(system, unpaid) in ("AWAITING_PAYMENT", "EXPIRED")
    wait_until(lambda: state_of(system, unpaid) == "EXPIRED")
    post(system, f"/orders/{unpaid}/payment", {}, 409)
    # Placed last, credited last: what was to be credited of the others would be there by now.
    place(system, "zoe")
    wait_until(lambda: entries(system, "zoe") == [("credit", 2)])
    assert (entries(system, "eve"), entries(system, "bob")) == ([], [])
