"""The inventory service over HTTP: the Flask application and its routes."""

from typing import Final, Protocol

from flask import Blueprint, Flask, Response, abort, current_app, request

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.entrypoints.described import DESCRIPTION
from inventory_service.entrypoints.schemas import (
    Article,
    HeldMessagesHealth,
    InventoryHealthResponse,
    ShipmentResponse,
    StockRequest,
    StockResponse,
)
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.dead_letters import DeadLetters, attention_for
from service_runtime.failing.holds import Holding, Holds, NoOutage
from service_runtime.http.application import create_application
from service_runtime.http.health import NeedsAttention, ReadyResponse, http_status, status_of
from service_runtime.http.problem import Problem
from service_runtime.http.readiness import FOR_S, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.responses import json_response
from service_runtime.http.write_guard import WriteGuard

_LOOPBACK: Final = KnownHosts()
_EVERYBODY: Final = WriteGuard()
_MAX_BODY_BYTES: Final = 1024

inventory_api = Blueprint("inventory", __name__)


class Consumer(Needed, DeadLetters, Protocol):
    """The port to the broker."""


_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    DatabaseFailure: Problem(503, "Database unavailable", "the inventory database does not answer"),
}


def create_app(
    stock_room: SqlStockRoom,
    broker: Consumer,
    holds: Holds,
    world: World,
    *,
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 16,
    guard: WriteGuard = _EVERYBODY,
    results: NeedsAttention | None = None,
    readiness_counts_s: float = FOR_S,
) -> Flask:
    """Returns the application for an open database and consumer. It answers requests that name one of `hosts`.

    `results` says whether the database went back in time. The readiness of both is asked again after `readiness_counts_s`.
    """
    app = create_application(
        __name__,
        [inventory_api],
        hosts=hosts,
        threads=threads,
        problem_of=_PROBLEM_OF,
        max_body_bytes=_MAX_BODY_BYTES,
        description=DESCRIPTION,
        guard=guard,
        new_uuid=world.new_uuid,
    )
    app.extensions["stock_room"] = stock_room
    app.extensions["broker"] = broker
    app.extensions["holds"] = holds
    app.extensions["results"] = results
    app.extensions["readiness"] = _readiness(stock_room, broker, holds, readiness_counts_s, world)
    return app


def _readiness(stock_room: SqlStockRoom, broker: Needed, holds: Holds, counts_s: float, world: World) -> Readiness:
    of_database = (
        "Give the inventory database what it lacks: an end of what locks it, room on its disk, the right to write, the standby "
        "that its commits wait for. "
        "Messages wait at the broker meanwhile."
    )
    of_broker = "Look at name server and broker with rocketmq-admin doctor. Messages wait at the broker meanwhile."
    of_messages = "Each is tried again until it works, and none is lost."
    needs = [
        Need("database", stock_room, of_database),
        Need("broker", broker, of_broker),
        Need("messages", NoOutage(holds), of_messages),
    ]
    return Readiness(needs, steady_s=world.steady_s, for_s=counts_s)


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
    """Whether an order could be shipped now: 200, or 503 with what is missing and what to do."""
    missing = _readiness_now().missing()
    return not_ready(missing) if missing else json_response(ReadyResponse())


@inventory_api.get("/healthz")
def get_health() -> Response:
    """All that is known: 503 while no order could be shipped, or the database refuses messages and takes none."""
    missing, holding = _readiness_now().missing(), current_app.extensions["holds"].state()
    results: NeedsAttention | None = current_app.extensions["results"]
    attention = [] if results is None else results.attention()
    attention += [] if missing else attention_for(current_app.extensions["broker"])
    health = InventoryHealthResponse(
        status=status_of(not missing, holding, attention),
        database=word_of("database", missing),
        broker=word_of("broker", missing),
        missing=[str(one) for one in missing],
        held=None if holding is None else _held(holding),
        attention=attention,
    )
    return json_response(health, http_status(health))


def _readiness_now() -> Readiness:
    readiness: Readiness = current_app.extensions["readiness"]
    return readiness


def _held(holding: Holding) -> HeldMessagesHealth:
    return HeldMessagesHealth(messages=holding.orders, for_s=round(holding.held_for_s, 1), cause=holding.cause)


def _stock_room() -> SqlStockRoom:
    stock_room: SqlStockRoom = current_app.extensions["stock_room"]
    return stock_room
