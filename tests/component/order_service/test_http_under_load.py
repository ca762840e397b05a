"""Tests of the order service while its broker hangs: orders wait, and other requests are served."""

import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import httpx
import pytest

from order_service.adapters.order_store import SqlOrderStore
from order_service.entrypoints.http import create_app
from order_service.service_layer.attempt import Attempt, Outcome
from rocketmq_broker.message import Message
from rocketmq_broker.world import World
from service_runtime.http.http_server import HttpServer
from service_runtime.settings.common import HttpSettings

ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
THREADS, PLACED_AT_ONCE, REQUESTS = 12, 4, 100


class HangingBroker:
    """A broker that accepts messages and does not respond until the test releases it."""

    def __init__(self) -> None:
        self.sends = 0
        self.goes_on = threading.Event()
        self._lock = threading.Lock()

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        with self._lock:
            self.sends += 1
        assert self.goes_on.wait(60)
        return Outcome.NOT_STARTED

    def why_unready(self) -> str | None:
        assert self.goes_on.wait(60)
        return None

    def refusing_brokers(self) -> list[str]:
        return []

    def count_discarded(self) -> None:
        return None


@pytest.fixture
def broker() -> HangingBroker:
    return HangingBroker()


@pytest.fixture
def client(sqlite_store: SqlOrderStore, broker: HangingBroker) -> Iterator[httpx.Client]:
    app = create_app(sqlite_store, broker, World(), threads=THREADS, placed_at_once=PLACED_AT_ONCE)
    server = HttpServer(app, HttpSettings.model_construct(http_port=0, http_threads=THREADS), World())
    server.start()
    with httpx.Client(base_url=server.url, timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        yield client
        broker.goes_on.set()
    server.stop()


def test_orders_are_read_while_a_hundred_wait_for_a_broker_that_hangs(client: httpx.Client, broker: HangingBroker) -> None:
    with ThreadPoolExecutor(REQUESTS) as customers:
        placing = {customers.submit(client.post, "/orders", json=ORDER) for _ in range(REQUESTS)}
        refused: set[httpx.Response] = set()
        while len(placing) > PLACED_AT_ONCE:
            done, placing = wait(placing, timeout=60, return_when=FIRST_COMPLETED)
            assert done
            refused |= {answer.result() for answer in done}
        assert {(answer.status_code, answer.headers["Retry-After"]) for answer in refused} == {(503, "1")}
        assert {answer.json()["title"] for answer in refused} == {"Too many orders at once"}

        for path in ("/orders?customer=ada", "/livez", "/openapi.json"):
            assert client.get(path).status_code == 200
        assert not any(answer.done() for answer in placing)

        broker.goes_on.set()
        assert {answer.result().json()["title"] for answer in placing} == {"Broker unavailable"}
    assert broker.sends == PLACED_AT_ONCE
    assert client.post("/orders", json=ORDER).json()["title"] == "Broker unavailable"


def test_health_checks_that_hang_leave_threads_for_orders_and_for_livez(client: httpx.Client, broker: HangingBroker) -> None:
    with ThreadPoolExecutor(20) as orchestrators:
        asked = [(method, path) for method in ("GET", "HEAD") for path in ("/readyz", "/healthz")] * 5
        checks = [orchestrators.submit(client.request, method, path) for method, path in asked]
        assert client.get("/livez").json() == {"status": "ok"}
        assert client.get("/orders?customer=ada").status_code == 200
        assert {check.result().status_code for check in checks} == {503}
    assert {"no answer within 2 s"} == {error["message"] for error in client.get("/readyz").json()["errors"]}
    broker.goes_on.set()


def test_a_request_that_fails_leaves_its_lane(client: httpx.Client, broker: HangingBroker) -> None:
    broker.goes_on.set()
    statuses = [client.post("/orders", json={"customer": "ada"}).status_code for _ in range(PLACED_AT_ONCE * 3)]
    assert set(statuses) == {400}
