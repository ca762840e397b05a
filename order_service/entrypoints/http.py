"""The order service over HTTP: the Flask application and its routes."""

from typing import Any, Final, Protocol
from urllib.parse import urlencode

from flask import Blueprint, Flask, Response, abort, current_app, request
from pydantic import BaseModel

from order_service.adapters.order_store import OrderStore
from order_service.domain.transaction import TransactionState
from order_service.entrypoints.openapi import openapi_document
from order_service.entrypoints.problems import PROBLEM_OF
from order_service.entrypoints.schemas import (
    HealthResponse,
    OrderHeaders,
    OrderPageQuery,
    OrderPageResponse,
    OrderRequest,
    OrderResponse,
    PlacedResponse,
    TransactionResponse,
)
from order_service.service_layer.placing import OrderPlacing, TransactionalSender
from service_runtime.problems import register_problems

MAX_BODY_BYTES: Final = 256 * 1024

orders_api = Blueprint("orders", __name__)


class Broker(TransactionalSender, Protocol):
    """What the application needs of the broker."""

    def is_reachable(self) -> bool:
        """Whether it answers now."""

    def count_discarded(self) -> int | None:
        """How many messages of orders it gave up unanswered and nobody has resumed; None if it does not say."""


def create_app(store: OrderStore, broker: Broker) -> Flask:
    """The application, on a database and a broker that are open."""
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.extensions["order_store"] = store
    app.extensions["broker"] = broker
    app.extensions["order_placing"] = OrderPlacing(store, broker)
    app.register_blueprint(orders_api)
    register_problems(app, PROBLEM_OF)
    return app


@orders_api.post("/orders")
def place_order() -> Response:
    """Places an order: 201 when its transaction committed, 202 when nobody can say yet."""
    headers = OrderHeaders.model_validate({"Idempotency-Key": request.headers.get("Idempotency-Key")})
    wanted = OrderRequest.model_validate_json(request.get_data())
    placing: OrderPlacing = current_app.extensions["order_placing"]
    placed = placing.place(
        customer=wanted.customer,
        items=wanted.domain_items(),
        currency=wanted.currency,
        idempotency_key=headers.idempotency_key,
    )
    response = _json(PlacedResponse.of(placed), 202 if placed.state is TransactionState.UNKNOWN else 201)
    response.headers["Location"] = f"/orders/{placed.order.order_id}"
    if placed.is_replay:
        response.headers["Idempotent-Replayed"] = "true"
    return response


@orders_api.get("/orders/<order_id>")
def get_order(order_id: str) -> Response:
    """One committed order."""
    order = _store().find_order(order_id) if _can_be_an_id(order_id) else None
    if order is None:
        abort(404, "no order has this id")
    return _json(OrderResponse.of(order))


@orders_api.get("/orders")
def list_orders() -> Response:
    """A customer's orders, page by page, the newest first."""
    query = OrderPageQuery.model_validate(request.args.to_dict())
    orders, before = _store().list_orders(query.customer, limit=query.limit, before=query.before)
    next_query = urlencode({"customer": query.customer, "limit": query.limit, "before": before})
    next_page = None if before is None else f"/orders?{next_query}"
    return _json(OrderPageResponse(orders=[OrderResponse.of(order) for order in orders], next=next_page))


@orders_api.get("/transactions/<transaction_id>")
def get_transaction(transaction_id: str) -> Response:
    """What became of a transaction; 404 while it is open, and for an id nobody knows."""
    state = _store().find_transaction(transaction_id) if _can_be_an_id(transaction_id) else None
    if state is None:
        abort(404, "nothing is decided under this id, at least not yet")
    return _json(TransactionResponse(transaction_id=transaction_id, state=state))


@orders_api.get("/healthz")
def get_health() -> Response:
    """Whether database and broker answer: 200 if both do, else 503. What wants a person's attention changes neither."""
    database = _store().is_reachable()
    broker: Broker = current_app.extensions["broker"]
    is_heard = broker.is_reachable()
    health = HealthResponse(
        status="ok" if database and is_heard else "degraded",
        database=_word(database),
        broker=_word(is_heard),
        attention=_attention(broker.count_discarded() if is_heard else None),
    )
    return _json(health, 200 if database and is_heard else 503)


@orders_api.get("/openapi.json")
def get_openapi() -> dict[str, Any]:
    """The requests and responses as JSON schemas (OpenAPI 3.1)."""
    return openapi_document()


def _store() -> OrderStore:
    store: OrderStore = current_app.extensions["order_store"]
    return store


def _can_be_an_id(text: str) -> bool:
    return len(text) <= 64 and text.isascii() and text.isprintable()


def _json(body: BaseModel, status: int = 200) -> Response:
    return Response(body.model_dump_json(), status=status, content_type="application/json")


def _attention(discarded: int | None) -> list[str]:
    if not discarded:
        return []
    return [f"messages of orders that were given up unanswered: {discarded}; python -m broker.admin discarded shows them"]


def _word(is_ok: bool) -> str:
    return "ok" if is_ok else "unreachable"
