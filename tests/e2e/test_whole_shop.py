"""Tests of orders that pass through all processes, with traces, TLS, and accounts with minimal permissions.

The tests share one shop: broker, order, credit and inventory service, Celery worker and Redis.
"""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.processes import PROJECT_ROOT, Process, Processes
from demo.system import QUICK_CHECKS, System
from service_runtime.failing.armed_failpoints import EXIT_STATUS
from tests.certificates import Authority
from tests.conftest import PROCESSES
from tests.dead_proxies import DEAD_PROXIES
from tests.e2e.backups import copied
from tests.e2e.clients import PATIENT
from tests.e2e.requests_file import Player, written_requests
from tests.e2e.trace_collector import Collector, running_collector
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MAKE_SECRETS = PROJECT_ROOT / "deploy" / "docker" / "make-secrets"
"""It makes the accounts with which the services run on Docker."""
TEA_CENTS = 250
REFUSED_CENTS = 666
REFUSE = f"""
    CREATE TRIGGER refuse BEFORE INSERT ON credits WHEN NEW.amount_cents = {REFUSED_CENTS}
    BEGIN SELECT RAISE(ABORT, 'no such amount'); END
"""
SPANS = {
    ("order_service", "POST /orders"),
    ("order_service", "execute_local_transaction"),
    ("order_service", "INSERT orders.db"),
    ("credit_service", "store messages"),
    ("credit_service", "INSERT credits.db"),
    ("credit_service.worker", "credit orders"),
    ("credit_service.worker", "INSERT credits.db"),
}


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop whose orders, stock and points are accessed over HTTP."""

    system: System
    processes: Processes
    collector: Collector
    secrets: Path

    @property
    def inventory(self) -> Process:
        assert self.system.inventory_service is not None
        return self.system.inventory_service

    def order(self, customer: str, price_cents: int = TEA_CENTS, article: str = "tea", quantity: int = 1, **more: str) -> str:
        """Places an order, and returns its id."""
        items = [{"name": article, "quantity": quantity, "price_cents": price_cents}]
        return str(self.post("/orders", {"customer": customer, "items": items, **more}, 201)["order"]["order_id"])

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        answer = httpx.post(f"{self.system.order_url}{path}", json=body, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json()

    def state(self, order_id: str) -> tuple[str, str | None]:
        found = httpx.get(f"{self.system.order_url}/orders/{order_id}", timeout=30).json()
        return found["state"], found["ended_because"]

    def entries(self, customer: str) -> list[tuple[str, int]]:
        """Returns the customer's entries, sorted. Checks that the balance is their sum."""
        answer = httpx.get(f"{self.system.credit_url}/customers/{customer}/credit", timeout=30)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        credit = answer.json()
        found = sorted((entry["kind"], entry["points"]) for entry in credit["entries"])
        assert credit["points"] == sum(points for _, points in found)
        return found

    def set_stock(self, article: str, available: int) -> None:
        url = f"{self.system.inventory_url}/stock/{article}"
        httpx.put(url, json={"available": available}, timeout=30).raise_for_status()

    def stock(self, article: str) -> int:
        return int(httpx.get(f"{self.system.inventory_url}/stock/{article}", timeout=30).json()["available"])

    def shipment(self, order_id: str) -> str | None:
        answer = httpx.get(f"{self.system.inventory_url}/orders/{order_id}/shipment", timeout=30)
        return str(answer.json()["state"]) if answer.is_success else None

    def rows(self, database: str, statement: str, *values: object) -> list[Any]:
        """Executes the statement in a service's database, and returns the rows."""
        with closing(sqlite3.connect(self.system.home / database, timeout=60)) as connection, connection:
            return connection.execute(statement, values).fetchall()


@pytest.fixture(scope="module")
def shop_of_all_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = tmp_path_factory.mktemp("shop")
    with running_collector() as collector, Processes(home / "logs") as processes:
        shop = Shop(secured(processes, home), processes, collector, home / "secrets")
        for process in shop.system.services[1:]:
            process.environment |= {
                "TRACES_ENABLED": "true",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
                "OTEL_BSP_SCHEDULE_DELAY": "200",
                **DEAD_PROXIES,
            }
        shop.system.start()
        shop.set_stock("tea", 1000)
        yield shop
        shop.system.begin_to_stop()


@pytest.fixture
def shop(request: pytest.FixtureRequest, shop_of_all_tests: Shop) -> Shop:
    """Returns the shop of all tests. Its logs are shown if this test fails."""
    request.node.stash[PROCESSES] = shop_of_all_tests.processes
    return shop_of_all_tests


def secured(processes: Processes, home: Path) -> System:
    """Returns the system with TLS. Each service gets its account from the environment and the secret from a file."""
    secrets = home / "secrets"
    subprocess.run([MAKE_SECRETS, secrets], check=True, capture_output=True, timeout=60)
    (home / "conf").mkdir()
    (home / "conf" / "plain_acl.yml").write_text((secrets / "plain-acl").read_text())
    authority = Authority(home / "certificates")
    certificate = authority.sign("broker")
    settings = {
        **QUICK_CHECKS,
        "aclEnable": "true",
        "rocketmqHome": str(home),
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(certificate.cert_path),
        "tls.server.keyPath": str(certificate.key_path),
    }
    (home / "failpoints").mkdir()
    patient = str(PATIENT["send_timeout_ms"])
    system = System(
        processes,
        home / "system",
        broker_settings=settings,
        has_inventory=True,
        order_environment={"ORDER_SEND_TIMEOUT_MS": patient, "ORDER_FAILPOINTS_FOLDER": str(home / "failpoints")},
        credit_environment={"CREDIT_CANCEL_REFUSED": "true", "CREDIT_MAX_TRIES": "1"},
        environment={"ROCKETMQ_TLS_ENABLE": "true", "ROCKETMQ_TLS_TRUST_CERT_PATH": str(authority.cert_path)},
    )
    assert system.inventory_service is not None
    system.inventory_service.environment["INVENTORY_SEND_TIMEOUT_MS"] = patient
    for process, name in (
        (system.order_service, "order"),
        (system.credit_service, "credit"),
        (system.inventory_service, "inventory"),
    ):
        process.environment["ROCKETMQ_ACCESS_KEY"] = f"{name}-service"
        process.environment["ROCKETMQ_SECRET_KEY_FILE"] = str(secrets / f"{name}-account")
    return system


def test_an_order_is_one_trace_from_the_request_to_the_credit_row(shop: Shop) -> None:
    order_id = shop.order("ada")
    wait_until(lambda: shop.entries("ada") == [("credit", 2)])
    wait_until(lambda: any(trace >= SPANS for trace in shop.collector.traces()))
    assert shop.rows("credits.db", "SELECT order_id, amount_cents FROM credits") == [(order_id, TEA_CENTS)]
    wait_until(lambda: shop.shipment(order_id) == "SHIPPED")


def test_an_order_is_credited_once_it_is_paid_and_never_if_its_deadline_passes(shop: Shop) -> None:
    unpaid, cancelled, paid = (shop.order(customer, payment="later") for customer in ("eve", "bob", "cy"))
    shop.post(f"/orders/{cancelled}/cancellation", {"reason": "too dear"})
    shop.post(f"/orders/{paid}/payment", {})
    wait_until(lambda: shop.entries("cy") == [("credit", 2)])
    assert shop.state(unpaid)[0] == "AWAITING_PAYMENT"
    shop.rows("orders.db", "UPDATE orders SET pay_until_ms = 1 WHERE order_id = ?", unpaid)
    wait_until(lambda: shop.state(unpaid)[0] == "EXPIRED")
    shop.post(f"/orders/{unpaid}/payment", {}, 409)
    # Placed last, credited last: what was to be credited of the others would be there by now.
    shop.order("zoe")
    wait_until(lambda: shop.entries("zoe") == [("credit", 2)])
    assert (shop.entries("eve"), shop.entries("bob")) == ([], [])


def test_a_cancelled_order_is_reversed_although_the_service_dies_before_it_sends_commit(shop: Shop) -> None:
    """The credit of a cancelled order is reversed by a check-back if the service exits before it sends COMMIT."""
    order_service = shop.system.order_service
    order_id = shop.order("fay")
    wait_until(lambda: shop.entries("fay") == [("credit", 2)])
    Path(order_service.environment["ORDER_FAILPOINTS_FOLDER"], "exit-after-local-commit").write_text("fay")
    with pytest.raises(httpx.TransportError):
        shop.post(f"/orders/{order_id}/cancellation", {})
    assert order_service.wait(timeout_s=60) == EXIT_STATUS
    order_service.start()
    wait_until(lambda: shop.entries("fay") == [("credit", 2), ("reversal", -2)])
    assert shop.state(order_id)[0] == "CANCELLED"
    assert shop.post(f"/orders/{order_id}/cancellation", {})["order"]["state"] == "CANCELLED"


def test_an_order_that_is_short_is_cancelled_and_its_credit_reversed_also_after_a_crash(shop: Shop) -> None:
    shop.set_stock("lamp", 3)
    shipped = shop.order("gus", 100, "lamp", 2)
    wait_until(lambda: shop.shipment(shipped) == "SHIPPED")
    short = shop.order("gus", 100, "lamp", 2)
    wait_until(lambda: shop.state(short) == ("CANCELLED", "out of stock: lamp"))
    wait_until(lambda: shop.entries("gus") == [("credit", 2), ("credit", 2), ("reversal", -2)])
    assert (shop.shipment(short), shop.stock("lamp")) == ("SHORT", 1)

    shop.inventory.kill()
    late = shop.order("hal", 100, "lamp", 4)
    wait_until(lambda: shop.entries("hal") == [("credit", 4)])
    assert shop.state(late) == ("PLACED", None)
    shop.inventory.start()
    wait_until(lambda: shop.state(late) == ("CANCELLED", "out of stock: lamp"))
    wait_until(lambda: shop.entries("hal") == [("credit", 4), ("reversal", -4)])
    assert shop.stock("lamp") == 1


def test_a_stock_that_goes_back_in_time_ships_again_what_it_lacks(shop: Shop, tmp_path: Path) -> None:
    database, backup = shop.system.home / "inventory.db", tmp_path / "backup.db"
    shop.set_stock("kettle", 10)
    copied(database, backup)
    shipped = [shop.order("kim", 100, "kettle") for _ in range(4)]
    wait_until(lambda: shop.stock("kettle") == 6)
    copied(backup, database)
    wait_until(lambda: shop.stock("kettle") == 6 and all(shop.shipment(order_id) == "SHIPPED" for order_id in shipped))
    attention = httpx.get(f"{shop.system.inventory_url}/healthz", timeout=30).json()["attention"]
    assert any("the inventory database was reset to an older state" in line for line in attention)


def test_an_order_that_cannot_be_credited_is_cancelled_where_the_setting_says_so(shop: Shop) -> None:
    shop.rows("credits.db", REFUSE)
    refused = shop.order("ida", REFUSED_CENTS)

    def is_cancelled() -> bool:
        """Places another order, and returns True if the refused order is cancelled. The refusal requires a later success."""
        shop.order("joe", 100)
        state, reason = shop.state(refused)
        return state == "CANCELLED" and str(reason).startswith("not credited: it failed too often")

    wait_until(is_cancelled)
    wait_until(lambda: shop.entries("ida") == [("credit", 0), ("reversal", 0)])


def test_each_account_suffices_for_its_service(shop: Shop) -> None:
    """The broker refuses no request of a service that uses its own account.

    This includes the requests after a restart, with which the order service checks whether its database is an old copy.
    """
    shop.system.order_service.stop()
    shop.system.order_service.start()
    for url in (shop.system.order_url, shop.system.credit_url, shop.system.inventory_url):
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
    assert "refused" not in shop.system.broker.output(), "the services ask for nothing that their accounts may not ask"


@pytest.mark.parametrize(("account", "refusal"), [("operators", ""), ("order-service", "Need admin permission")])
def test_the_operators_see_transactions_and_a_service_does_not(shop: Shop, account: str, refusal: str) -> None:
    secret = shop.secrets / f"{account.removesuffix('-service')}-account"
    environment = {
        **shop.system.order_service.environment,
        "ROCKETMQ_ACCESS_KEY": account,
        "ROCKETMQ_SECRET_KEY_FILE": str(secret),
    }
    command = [sys.executable, "-m", "rocketmq_broker.admin", "pending"]
    asked = subprocess.run(command, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=120)
    assert (asked.returncode == 0, refusal in asked.stderr) == (not refusal, True), asked.stderr


def test_each_request_of_the_requests_file_is_answered_as_it_says(shop: Shop) -> None:
    system = shop.system
    player = Player({"orders": system.order_url, "credits": system.credit_url, "inventory": system.inventory_url})
    for request in written_requests():
        answer = player.play(request)
        deadline = time.monotonic() + 60
        while answer.status_code == httpx.codes.NOT_FOUND and time.monotonic() < deadline:  # its message is on its way
            time.sleep(0.1)
            answer = player.play(request)
        assert answer.status_code == request.status, f"{request.title}: {answer.text}"
