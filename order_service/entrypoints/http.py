"""The HTTP interface of the order service, with the Flask application and its routes."""

from collections.abc import Sequence
from typing import Final, Protocol
from urllib.parse import urlencode

from flask import Blueprint, Flask, Response, abort, current_app, request

from order_messages.states import TransactionState
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Item, Order
from order_service.entrypoints.schemas import (
    DESCRIPTION,
    CancellationRequest,
    CancelledResponse,
    OrderHeaders,
    OrderHealthResponse,
    OrderPageQuery,
    OrderPageResponse,
    OrderRequest,
    OrderResponse,
    PaymentRequest,
    PlacedResponse,
    TimelineResponse,
    TransactionResponse,
)
from order_service.service_layer.attempt import TransactionalSender
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.order_store import HistoryDoubted
from order_service.service_layer.paying import ImpossibleNow, OrderPaying, UnknownOrder
from order_service.service_layer.placing import KeyReused, OrderPlacing
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.http.application import create_application
from service_runtime.http.health import http_status, status_of
from service_runtime.http.problem import Problem
from service_runtime.http.readiness import FOR_S, Missing, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.requests import RequestLane, json_response
from service_runtime.http.write_guard import WriteGuard

MAX_BODY_BYTES: Final = 256 * 1024
_LOOPBACK: Final = KnownHosts()
_UNRESTRICTED: Final = WriteGuard()

orders_api = Blueprint("orders", __name__)

PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    KeyReused: Problem(422, "Idempotency key reused"),
    UnknownOrder: Problem(404, "Not Found"),
    ImpossibleNow: Problem(409, "Not possible in this state"),
    HistoryDoubted: Problem(
        503,
        "Database in doubt",
        "this may be the wrong order database or an old copy; nothing was ordered or changed; see /healthz for what to do",
    ),
    DatabaseFailure: Problem(503, "Database unavailable", "the order database does not answer"),
}
"""Maps each error to its problem response. `Outcome` defines the problem responses of failed transactions."""


class BrokerOfOrders(TransactionalSender, Needed, Protocol):
    """The broker interface that the application needs."""

    def refusing_brokers(self) -> list[str]:
        """Returns a reason for each broker that cannot store orders while others can."""

    def count_discarded(self) -> int | None:
        """Returns the number of discarded messages that have not been resumed, or None if the broker does not respond."""


def create_app(
    store: SqlOrderStore,
    broker: BrokerOfOrders,
    world: World,
    *,
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 48,
    placed_at_once: int = 32,
    payment_deadline_ms: int = 600_000,
    guard: WriteGuard = _UNRESTRICTED,
    readiness_counts_s: float = FOR_S,
) -> Flask:
    """Returns the Flask application.

    The application answers only requests whose Host header names one of `hosts`. At most `placed_at_once` of the server's
    `threads` place or change orders at the same time. The readiness of database and broker is cached for `readiness_counts_s`
    seconds.
    """
    app = create_application(
        __name__,
        [orders_api],
        hosts=hosts,
        threads=threads,
        own_lanes=_lanes(placed_at_once),
        problem_of=PROBLEM_OF,
        max_body_bytes=MAX_BODY_BYTES,
        description=DESCRIPTION,
        guard=guard,
        new_uuid=world.new_uuid,
    )
    app.extensions["order_store"] = store
    app.extensions["broker"] = broker
    app.extensions["readiness"] = _readiness(store, broker, readiness_counts_s, world)
    app.extensions["order_placing"] = OrderPlacing(store, broker, payment_deadline_ms, world.wall_ms, world.new_uuid)
    app.extensions["order_paying"] = OrderPaying(store, world.wall_ms)
    app.extensions["order_cancelling"] = OrderCancelling(store, broker, world.wall_ms)
    return app


def _readiness(store: SqlOrderStore, broker: BrokerOfOrders, counts_s: float, world: World) -> Readiness:
    of_database = (
        "Check the order database for a lock that is held, a full disk, a missing write privilege, or a standby that commits "
        "wait for. "
        "The service accepts orders again once the database does."
    )
    of_broker = "Run rocketmq-admin doctor to check name server and broker. The service accepts orders again once they do."
    of_history = (
        "No order is accepted, and check-backs are answered UNKNOWN, until ORDER_DATABASE_URL points to the right database, or "
        "until you accept this one: python -m order_service adopt-history. "
        "See docs/services.md, An old copy of the order database."
    )
    needs = [
        Need("database", store, of_database),
        Need("broker", broker, of_broker),
        Need("history", store.history, of_history),
    ]
    return Readiness(needs, steady_s=world.steady_s, for_s=counts_s)


def _lanes(placed_at_once: int) -> dict[str, RequestLane]:
    placing = RequestLane(
        placed_at_once,
        "Too many orders at once",
        f"{placed_at_once} orders are being placed; nothing was ordered, try again later",
    )
    return dict.fromkeys(("POST /orders", "POST /orders/<order_id>/payment", "POST /orders/<order_id>/cancellation"), placing)


@orders_api.post("/orders")
def place_order() -> Response:
    """Places an order. Returns 201 if its transaction is COMMITTED or PENDING, 202 if the outcome is not known yet."""
    headers = OrderHeaders.model_validate({"Idempotency-Key": request.headers.get("Idempotency-Key")})
    wanted = OrderRequest.model_validate_json(request.get_data())
    placing: OrderPlacing = current_app.extensions["order_placing"]
    placed = placing.place(
        customer=wanted.customer,
        items=tuple(Item(item.name, item.quantity, item.price_cents) for item in wanted.items),
        currency=wanted.currency,
        idempotency_key=headers.idempotency_key,
        is_paid_later=wanted.payment == "later",
    )
    response = json_response(PlacedResponse.of(placed), 202 if placed.state is TransactionState.UNKNOWN else 201)
    response.headers["Location"] = f"/orders/{placed.order.order_id}"
    if placed.is_replay:
        response.headers["Idempotent-Replayed"] = "true"
    return response


@orders_api.post("/orders/<order_id>/payment")
def pay_order(order_id: str) -> Response:
    """Pays for an order that is paid later. Returns 200, even if the order was already paid."""
    PaymentRequest.model_validate_json(request.get_data())
    paying: OrderPaying = current_app.extensions["order_paying"]
    return json_response(OrderResponse.of(paying.pay(_id(order_id))))


@orders_api.post("/orders/<order_id>/cancellation")
def cancel_order(order_id: str) -> Response:
    """Cancels an order. Returns 200, even if it was already cancelled, or 202 if the outcome is not known yet."""
    wanted = CancellationRequest.model_validate_json(request.get_data())
    cancelling: OrderCancelling = current_app.extensions["order_cancelling"]
    cancelled = cancelling.cancel(_id(order_id), wanted.reason)
    return json_response(CancelledResponse.of(cancelled), 200 if cancelled.is_known else 202)


@orders_api.get("/orders/<order_id>")
def get_order(order_id: str) -> Response:
    """Returns an order."""
    return json_response(OrderResponse.of(_order(order_id)))


@orders_api.get("/orders/<order_id>/timeline")
def get_timeline(order_id: str) -> Response:
    """Returns the events of an order, oldest first."""
    order = _order(order_id)
    return json_response(TimelineResponse.of(order, _store().find_transactions(order_id)))


@orders_api.get("/orders")
def list_orders() -> Response:
    """Returns a page of a customer's orders, newest first."""
    query = OrderPageQuery.model_validate(request.args.to_dict())
    orders, before = _store().list_orders(query.customer, limit=query.limit, before=query.before)
    next_query = urlencode({"customer": query.customer, "limit": query.limit, "before": before})
    next_page = None if before is None else f"/orders?{next_query}"
    return json_response(OrderPageResponse(orders=[OrderResponse.of(order) for order in orders], next=next_page))


@orders_api.get("/transactions/<transaction_id>")
def get_transaction(transaction_id: str) -> Response:
    """Returns the state of a transaction. Returns 404 for an unknown id, and before the transaction is stored."""
    state = _store().find_transaction(transaction_id) if _can_be_an_id(transaction_id) else None
    if state is None:
        abort(404, "no stored transaction has this id")
    return json_response(TransactionResponse(transaction_id=transaction_id, state=state))


@orders_api.get("/readyz")
def get_readiness() -> Response:
    """Reports whether orders can be placed now. Returns 200, or 503 with the cause and its remedy."""
    missing = _missing()
    return not_ready(missing) if missing else json_response(_health(missing, []))


@orders_api.get("/healthz")
def get_health() -> Response:
    """Reports the health for people and monitoring. Returns 200 while orders can be placed, otherwise 503."""
    missing = _missing()
    health = _health(missing, [] if missing else _attention(current_app.extensions["broker"]))
    return json_response(health, http_status(health.status))


def _store() -> SqlOrderStore:
    store: SqlOrderStore = current_app.extensions["order_store"]
    return store


def _order(order_id: str) -> Order:
    order = _store().find_order(_id(order_id))
    if order is None:
        abort(404, "no order has this id")
    return order


def _id(text: str) -> str:
    if not _can_be_an_id(text):
        abort(404, "no order has this id")
    return text


def _can_be_an_id(text: str) -> bool:
    return len(text) <= 64 and text.isascii() and text.isprintable()


def _missing() -> Sequence[Missing]:
    readiness: Readiness = current_app.extensions["readiness"]
    return readiness.missing()


def _health(missing: Sequence[Missing], attention: list[str]) -> OrderHealthResponse:
    return OrderHealthResponse(
        status=status_of(not missing, attention),
        database=word_of("database", missing),
        broker=word_of("broker", missing),
        missing=[str(one) for one in missing],
        attention=attention,
    )


def _attention(broker: BrokerOfOrders) -> list[str]:
    refusing = [
        f"{reason}; orders go to the other brokers; run rocketmq-admin doctor for details" for reason in broker.refusing_brokers()
    ]
    discarded = broker.count_discarded()
    if not discarded:
        return refusing
    return [
        f"the broker discarded {discarded} messages of orders after the last check-back; "
        "run python -m rocketmq_broker.admin discarded to list them",
        *refusing,
    ]
