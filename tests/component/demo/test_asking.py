"""Tests that the demo's HTTP requests to its services ignore the proxies of the shell."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from flask import Flask, jsonify

from demo.asking import ask
from demo.orders import MadeOrder, OrderClient
from demo.processes import Process, answers
from demo.scenarios.runs import Runs
from demo.system import System
from demo.up.keeper import Keeper
from demo.up.shop import Shop
from rocketmq_broker.admin.console import Visit
from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.session import Target
from rocketmq_broker.world import World
from service_runtime.http.http_server import HttpServer
from service_runtime.settings.common import HttpSettings
from tests.dead_proxies import DEAD_PROXIES

FORM = {"customer": "ada", "article": "book", "quantity": "2", "price": "12.90"}


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yields the URL of an order service. The environment names proxies that do not exist."""
    for name, value in DEAD_PROXIES.items():
        monkeypatch.setenv(name, value)
    app = Flask("order service")
    app.get("/healthz", endpoint="healthz")(lambda: jsonify(status="ok"))
    app.post("/orders", endpoint="orders")(lambda: (jsonify(order={"order_id": "order-1", "state": "PLACED"}), 201))
    server = HttpServer(app, HttpSettings(http_port=0, http_threads=8), World())
    server.start()
    yield server.url
    server.stop()


def test_a_process_that_answers_is_ready(url: str) -> None:
    assert answers(f"{url}/healthz")(cast(Process, None))


def test_a_request_is_answered(url: str) -> None:
    assert ask("POST", f"{url}/orders", {}, timeout_s=60).status_code == 201


def test_an_order_is_placed(url: str) -> None:
    with OrderClient(url, patience_s=1) as client:
        assert client.place(MadeOrder("key", "ada", (("book", 1, 1_250),))).order_id == "order-1"


async def test_an_order_of_the_form_is_placed(url: str) -> None:
    shop = Shop(cast(System, SimpleNamespace(order_url=url)), cast(Keeper, None), cast(Runs, None), {})
    assert await shop.place(Visit(Brokers(Target()), FORM, lambda: 0)) == "order order-1 of ada is PLACED"
