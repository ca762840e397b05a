"""The inventory service over HTTP: the Flask application and its routes."""

from typing import Final

from flask import Blueprint, Flask, Response, abort, current_app, request

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.entrypoints.described import DESCRIPTION
from inventory_service.entrypoints.schemas import Article, HealthResponse, ShipmentResponse, StockRequest, StockResponse
from service_runtime.application import create_application
from service_runtime.database_errors import DatabaseFailure
from service_runtime.health import Reachable, http_status, word
from service_runtime.known_hosts import KnownHosts
from service_runtime.lanes import THREADS_KEPT_FREE, checks_lane, reading_lane
from service_runtime.problems import Problem
from service_runtime.responses import json_response
from service_runtime.write_guard import WriteGuard

_LOOPBACK: Final = KnownHosts()
_EVERYBODY: Final = WriteGuard()
_MAX_BODY_BYTES: Final = 1024

inventory_api = Blueprint("inventory", __name__)

_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    DatabaseFailure: Problem(503, "Database unavailable", "the inventory database does not answer"),
}


def create_app(
    stock_room: SqlStockRoom,
    broker: Reachable,
    *,
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 16,
    guard: WriteGuard = _EVERYBODY,
) -> Flask:
    """The application, on a database and a consumer that are open. It answers requests that name one of `hosts`."""
    quick, checks = reading_lane(threads - THREADS_KEPT_FREE + 1), checks_lane()
    app = create_application(
        __name__,
        [inventory_api],
        hosts=hosts,
        lane_of={
            "GET /stock/<path:article>": quick,
            "PUT /stock/<path:article>": quick,
            "GET /orders/<order_id>/shipment": quick,
            "GET /readyz": checks,
            "GET /healthz": checks,
        },
        problem_of=_PROBLEM_OF,
        max_body_bytes=_MAX_BODY_BYTES,
        description=DESCRIPTION,
        guard=guard,
    )
    app.extensions["stock_room"] = stock_room
    app.extensions["broker"] = broker
    return app


@inventory_api.put("/stock/<path:article>")
def put_stock(article: str) -> Response:
    """Says how many of an article there are; from then on it is counted."""
    name = Article.model_validate({"name": article}).name
    wanted = StockRequest.model_validate_json(request.get_data())
    _stock_room().set_stock(name, wanted.available)
    return json_response(StockResponse(article=name, available=wanted.available))


@inventory_api.get("/stock/<path:article>")
def get_stock(article: str) -> Response:
    """How many of an article there are; 404 for one that is not counted."""
    name = Article.model_validate({"name": article}).name
    available = _stock_room().find_stock(name)
    if available is None:
        abort(404, "this article is not counted: PUT its stock first")
    return json_response(StockResponse(article=name, available=available))


@inventory_api.get("/orders/<order_id>/shipment")
def get_shipment(order_id: str) -> Response:
    """What became of an order here; 404 until its message has come."""
    can_be_an_id = len(order_id) <= 36 and order_id.isascii() and order_id.isprintable()
    shipment = _stock_room().find_shipment(order_id) if can_be_an_id else None
    if shipment is None:
        abort(404, "no message of an order with this id has come, at least not yet")
    return json_response(ShipmentResponse.of(shipment))


@inventory_api.get("/readyz")
def get_readiness() -> Response:
    """200 if callers can be served, else 503."""
    return _health()


@inventory_api.get("/healthz")
def get_health() -> Response:
    """All that is known: 503 while database or broker is unreachable."""
    return _health()


def _health() -> Response:
    broker: Reachable = current_app.extensions["broker"]
    database, heard = word(_stock_room().is_reachable()), word(broker.is_reachable())
    health = HealthResponse(status="ok" if database == heard == "ok" else "degraded", database=database, broker=heard)
    return json_response(health, http_status(health))


def _stock_room() -> SqlStockRoom:
    stock_room: SqlStockRoom = current_app.extensions["stock_room"]
    return stock_room
