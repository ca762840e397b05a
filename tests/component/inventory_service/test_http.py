from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine, text

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.entrypoints.http import create_app
from rocketmq_broker.world import World
from service_runtime.http.readiness import Need
from service_runtime.inbox.backlog import InboxBacklog
from service_runtime.inbox.health import ServiceHealth
from tests.component.inventory_service.conftest import applied, created, shipped, to_ship
from tests.passing_time import Clock


class Broker:
    is_up = True
    group = "inventory_service"

    def why_unready(self) -> str | None:
        return None if self.is_up else "the broker is away"

    def count_dead_letters(self) -> int:
        return 0

    def attention(self) -> list[str]:
        return []


@pytest.fixture
def room(sqlite_engine: Engine, clock: Clock) -> SqlStockRoom:
    return SqlStockRoom(sqlite_engine, clock.world())


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def client(room: SqlStockRoom, broker: Broker, clock: Clock) -> Iterator[FlaskClient]:
    backlog, unsent = (InboxBacklog(rows, "inventory_service", lambda: clock.now_ms) for rows in (room.inbox, room.shortages))
    health = ServiceHealth(
        service="inventory",
        database=room,
        consumer=broker,
        backlog=backlog,
        outbox=Need("shortages", unsent, "Look at the broker."),
        results=broker,
        now_s=World().steady_s,
        readiness_counts_s=0,
    )
    with create_app(room, health, World()).test_client() as client:
        yield client


def test_stock_is_set_and_read(client: FlaskClient) -> None:
    answer = client.put("/stock/green%20tea%2Floose", json={"available": 3})
    assert (answer.status_code, answer.json) == (200, {"article": "green tea/loose", "available": 3})
    client.put("/stock/green%20tea%2Floose", json={"available": 0})
    assert client.get("/stock/green tea/loose").json["available"] == 0


@pytest.mark.parametrize("body", [{}, {"available": -1}, {"available": "3"}, {"available": 10**13}, {"available": 1, "more": 2}])
def test_a_wrong_stock_is_400(client: FlaskClient, body: dict[str, object]) -> None:
    answer = client.put("/stock/tea", json=body)
    assert (answer.status_code, answer.content_type) == (400, "application/problem+json")


@pytest.mark.parametrize("path", ["/stock/tea", "/orders/none/shipment", "/orders/" + "x" * 99 + "/shipment", "/nothing"])
def test_what_is_not_known_is_404(client: FlaskClient, path: str) -> None:
    assert (client.get(path).status_code, client.get(path).content_type) == (404, "application/problem+json")


@pytest.mark.parametrize("path", ["/stock/%00", "/stock/" + "x" * 201])
def test_a_name_that_is_none_is_400(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 400


def test_a_shipment_says_what_was_missing(client: FlaskClient, room: SqlStockRoom) -> None:
    client.put("/stock/tea", json={"available": 1})
    applied(room, to_ship("order-1", tea=2))
    assert client.get("/orders/order-1/shipment").json == {"order_id": "order-1", "state": "SHORT", "missing": "tea"}


EMPTY = {"waiting": 0, "failed": 0, "parked": 0, "oldest_s": None, "last_error": None}
ALL_IS_WELL = {"status": "ok", "database": "ok", "broker": "ok", "inbox": EMPTY, "attention": [], "missing": []}


def test_shortages_that_cannot_be_sent_are_degraded(client: FlaskClient, room: SqlStockRoom, clock: Clock) -> None:
    room.set_stock("tea", 0)
    shipped(room, created("1"))
    assert client.get("/readyz").status_code == 200
    clock.pass_s(31)
    assert [error["field"] for error in client.get("/readyz").json["errors"]] == ["shortages"]


def test_health_and_readiness_name_what_is_missing(client: FlaskClient, broker: Broker) -> None:
    assert client.get("/healthz").json == ALL_IS_WELL
    assert client.get("/readyz").json == {"status": "ok"}
    broker.is_up = False
    health, ready = client.get("/healthz"), client.get("/readyz")
    assert (health.status_code, health.json["broker"], health.json["database"]) == (503, "unreachable", "ok")
    assert (ready.status_code, ready.json["title"]) == (503, "Not ready")
    assert ready.json["errors"] == [{"field": "broker", "message": "the broker is away"}]
    assert "Until then messages wait at the broker or in the inbox" in ready.json["detail"]


def test_a_database_that_does_not_answer_is_503(client: FlaskClient, sqlite_engine: Engine) -> None:
    with sqlite_engine.begin() as connection:
        connection.execute(text("ALTER TABLE stock RENAME TO gone"))
    assert client.get("/stock/tea").status_code == 503
