"""The HTTP interface of the inventory service, with the Flask application and its routes."""

from typing import Final, Protocol

from flask import Blueprint, Flask, Response, abort, current_app, request

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.entrypoints.described import DESCRIPTION
from inventory_service.entrypoints.schemas import (
    Article,
    InventoryHealthResponse,
    ShipmentResponse,
    StockRequest,
    StockResponse,
)
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.failing.dead_letters import DeadLetters, attention_for
from service_runtime.http.application import create_application
from service_runtime.http.health import NeedsAttention, ReadyResponse, http_status, status_of
from service_runtime.http.problem import Problem
from service_runtime.http.readiness import FOR_S, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.requests import json_response
from service_runtime.http.write_guard import WriteGuard
from service_runtime.inbox.backlog import InboxBacklog

_LOOPBACK: Final = KnownHosts()
_UNRESTRICTED: Final = WriteGuard()
_MAX_BODY_BYTES: Final = 1024

inventory_api = Blueprint("inventory", __name__)


class Consumer(Needed, DeadLetters, Protocol):
    """The interface of the consumer that the application needs for its health checks."""


_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    DatabaseFailure: Problem(503, "Database unavailable", "the inventory database does not answer"),
}


def create_app(
    stock_room: SqlStockRoom,
    broker: Consumer,
    backlog: InboxBacklog,
    shortages: Needed,
    world: World,
    *,
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 16,
    guard: WriteGuard = _UNRESTRICTED,
    results: NeedsAttention | None = None,
    readiness_counts_s: float = FOR_S,
) -> Flask:
    """Returns the Flask application. It answers requests whose Host header names one of `hosts`.

    `backlog` is that of the inbox, and `shortages` that of the outbox. `results` reports whether the database was reset to an
    older state. The readiness is cached for `readiness_counts_s` seconds.
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
    app.extensions["backlog"] = backlog
    app.extensions["results"] = results
    app.extensions["readiness"] = _readiness(stock_room, broker, backlog, shortages, readiness_counts_s, world)
    return app


def _readiness(
    stock_room: Needed, broker: Needed, backlog: Needed, shortages: Needed, counts_s: float, world: World
) -> Readiness:
    meanwhile = "Until then messages wait at the broker or in the inbox, and none is lost."
    of_database = "a lock that is held, a full disk, a missing write privilege, or a standby that commits wait for"
    needs = [
        Need("database", stock_room, f"Check the inventory database for {of_database}. {meanwhile}"),
        Need("broker", broker, f"Run rocketmq-admin doctor to check name server and broker. {meanwhile}"),
        Need("orders", backlog, f"The log says why. {meanwhile}"),
        Need("shortages", shortages, "The log says why they cannot be sent. Until then the order service cancels no such order."),
    ]
    return Readiness(needs, steady_s=world.steady_s, for_s=counts_s)


@inventory_api.put("/stock/<path:article>")
def put_stock(article: str) -> Response:
    """Sets the stock of an article. The article is tracked after that."""
    name = Article.model_validate({"name": article}).name
    wanted = StockRequest.model_validate_json(request.get_data())
    _stock_room().set_stock(name, wanted.available)
    return json_response(StockResponse(article=name, available=wanted.available))


@inventory_api.get("/stock/<path:article>")
def get_stock(article: str) -> Response:
    """Returns the stock of an article. 404 if it is not tracked."""
    name = Article.model_validate({"name": article}).name
    available = _stock_room().find_stock(name)
    if available is None:
        abort(404, "the stock of this article is not tracked; set it with PUT first")
    return json_response(StockResponse(article=name, available=available))


@inventory_api.get("/orders/<order_id>/shipment")
def get_shipment(order_id: str) -> Response:
    """Returns the shipment of an order. 404 until its message has been consumed."""
    can_be_an_id = len(order_id) <= 36 and order_id.isascii() and order_id.isprintable()
    shipment = _stock_room().find_shipment(order_id) if can_be_an_id else None
    if shipment is None:
        abort(404, "no message of an order with this id has been consumed yet")
    return json_response(ShipmentResponse.of(shipment))


@inventory_api.get("/readyz")
def get_readiness() -> Response:
    """Reports whether orders can be shipped now: 200, or 503 with what is missing and how to fix it."""
    missing = _readiness_now().missing()
    return not_ready(missing) if missing else json_response(ReadyResponse())


@inventory_api.get("/healthz")
def get_health() -> Response:
    """Reports database, broker, inbox and dead letters: 200, or 503 if degraded."""
    missing = _readiness_now().missing()
    database = word_of("database", missing)
    backlog: InboxBacklog = current_app.extensions["backlog"]
    state = backlog.state() if database == "ok" else None
    results: NeedsAttention | None = current_app.extensions["results"]
    attention = [*([] if results is None else results.attention()), *backlog.attention(state)]
    attention += [] if missing else attention_for(current_app.extensions["broker"])
    health = InventoryHealthResponse(
        status=status_of(not missing, attention),
        database=database,
        broker=word_of("broker", missing),
        inbox=backlog.health(state),
        missing=[str(one) for one in missing],
        attention=attention,
    )
    return json_response(health, http_status(health))


def _readiness_now() -> Readiness:
    readiness: Readiness = current_app.extensions["readiness"]
    return readiness


def _stock_room() -> SqlStockRoom:
    stock_room: SqlStockRoom = current_app.extensions["stock_room"]
    return stock_room
