"""The HTTP interface of the inventory service, with the Flask application and its routes."""

from typing import Final

from flask import Blueprint, Flask, Response, abort, current_app, request

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.entrypoints.schemas import Article, ShipmentResponse, StockRequest, StockResponse
from rocketmq_broker import __version__
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.http.application import create_application
from service_runtime.http.problem import Problem
from service_runtime.http.requests import json_response
from service_runtime.http.write_guard import WriteGuard
from service_runtime.inbox.health import HealthResponse, ServiceHealth, health_api

_LOOPBACK: Final = KnownHosts()
_UNRESTRICTED: Final = WriteGuard()
_MAX_BODY_BYTES: Final = 1024

inventory_api = Blueprint("inventory", __name__)


_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    DatabaseFailure: Problem(503, "Database unavailable", "the inventory database does not answer"),
}
_DESCRIPTION: Final = ApiDescription(
    "Inventory service",
    __version__,
    {
        "PUT /stock/<path:article>": Described({200: StockResponse}, body=StockRequest),
        "GET /stock/<path:article>": Described({200: StockResponse}),
        "GET /orders/<order_id>/shipment": Described({200: ShipmentResponse}),
    },
    health=HealthResponse,
)


def create_app(
    stock_room: SqlStockRoom,
    health: ServiceHealth,
    world: World,
    *,
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 16,
    guard: WriteGuard = _UNRESTRICTED,
) -> Flask:
    """Returns the Flask application. It rejects requests whose Host header does not name one of `hosts`."""
    app = create_application(
        __name__,
        [inventory_api, health_api],
        hosts=hosts,
        threads=threads,
        problem_of=_PROBLEM_OF,
        max_body_bytes=_MAX_BODY_BYTES,
        description=_DESCRIPTION,
        guard=guard,
        new_uuid=world.new_uuid,
    )
    app.extensions["stock_room"] = stock_room
    app.extensions["health"] = health
    return app


@inventory_api.put("/stock/<path:article>")
def put_stock(article: str) -> Response:
    """Sets the stock of an article. If the article was not tracked, starts to track it."""
    name = Article.model_validate({"name": article}).name
    wanted = StockRequest.model_validate_json(request.get_data())
    _stock_room().set_stock(name, wanted.available)
    return json_response(StockResponse(article=name, available=wanted.available))


@inventory_api.get("/stock/<path:article>")
def get_stock(article: str) -> Response:
    """Returns the stock of an article. Responds with 404 if the article is not tracked."""
    name = Article.model_validate({"name": article}).name
    available = _stock_room().find_stock(name)
    if available is None:
        abort(404, "the stock of this article is not tracked; set it with PUT first")
    return json_response(StockResponse(article=name, available=available))


@inventory_api.get("/orders/<order_id>/shipment")
def get_shipment(order_id: str) -> Response:
    """Returns the shipment of an order. Responds with 404 until a message of the order has been consumed."""
    can_be_an_id = len(order_id) <= 36 and order_id.isascii() and order_id.isprintable()
    shipment = _stock_room().find_shipment(order_id) if can_be_an_id else None
    if shipment is None:
        abort(404, "no message of an order with this id has been consumed yet")
    return json_response(ShipmentResponse.model_validate(shipment, from_attributes=True))


def _stock_room() -> SqlStockRoom:
    stock_room: SqlStockRoom = current_app.extensions["stock_room"]
    return stock_room
