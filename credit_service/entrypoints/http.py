"""The HTTP interface of the credit service, with the Flask application and its routes."""

from typing import Final

from flask import Blueprint, Flask, Response, abort, current_app, request

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.repairs import NothingToRepair, RepairRefused, Repairs
from credit_service.entrypoints.health import CreditHealth, CreditHealthResponse
from credit_service.entrypoints.repairs import RepairedResponse, RepairRequest, repairs_api
from credit_service.entrypoints.schemas import CustomerCreditQuery, CustomerCreditResponse, LimitQuery, OrderCreditResponse
from rocketmq_broker import __version__
from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.http.application import create_application
from service_runtime.http.problem import Problem
from service_runtime.http.requests import json_response
from service_runtime.inbox.health import health_api

_LOOPBACK: Final = KnownHosts()
_MAX_BODY_BYTES: Final = 1024
"""The maximum size of a request body in bytes. Only requests for repairs have a body."""

credits_api = Blueprint("credits", __name__)

_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    NothingToRepair: Problem(404, "Nothing to repair"),
    RepairRefused: Problem(409, "Repair refused"),
    DatabaseFailure: Problem(503, "Database unavailable", "the credit database does not answer"),
}
_DESCRIPTION: Final = ApiDescription(
    "Credit service",
    __version__,
    {
        "GET /customers/<path:customer>/credit": Described({200: CustomerCreditResponse}, query=LimitQuery),
        "GET /orders/<order_id>/credit": Described({200: OrderCreditResponse}),
        "PUT /repairs/<repair_id>": Described(
            {200: RepairedResponse, 201: RepairedResponse}, body=RepairRequest, problems=(409,)
        ),
    },
    health=CreditHealthResponse,
)


def create_app(
    ledger: Ledger,
    health: CreditHealth,
    world: World,
    *,
    repairs: Repairs | None = None,
    repair_key: str = "",
    hosts: KnownHosts = _LOOPBACK,
    threads: int = 16,
) -> Flask:
    """Returns the Flask application. `health` reports on all parts of the service.

    The application accepts only requests whose Host header names one of `hosts`. `threads` is the number of the server's
    threads. Without `repair_key`, the route for repairs is disabled.
    """
    app = create_application(
        __name__,
        [credits_api, repairs_api, health_api],
        hosts=hosts,
        threads=threads,
        problem_of=_PROBLEM_OF,
        max_body_bytes=_MAX_BODY_BYTES,
        description=_DESCRIPTION,
        new_uuid=world.new_uuid,
    )
    app.extensions["ledger"] = ledger
    app.extensions["health"] = health
    app.extensions["repairs"] = repairs
    app.extensions["repair_key"] = repair_key
    return app


@credits_api.get("/customers/<path:customer>/credit")
def get_credit(customer: str) -> Response:
    """Returns a customer's balance and latest entries."""
    query = CustomerCreditQuery.model_validate({**request.args.to_dict(), "customer": customer})
    found = None if "\x00" in query.customer else _ledger().find_customer(query.customer, max_entries=query.limit)
    if found is None:
        abort(404, "this customer has no credit")
    return json_response(CustomerCreditResponse.model_validate(found, from_attributes=True))


@credits_api.get("/orders/<order_id>/credit")
def get_order_credit(order_id: str) -> Response:
    """Returns the credit of an order, and the reversal if the order was cancelled.

    Responds with 404 until a message of the order has been consumed.
    """
    can_be_an_id = len(order_id) <= 36 and order_id.isascii() and order_id.isprintable()
    entries = _ledger().find_order(order_id) if can_be_an_id else ()
    if not entries:
        abort(404, "no message of an order with this id has been consumed yet")
    return json_response(OrderCreditResponse.of(entries))


def _ledger() -> Ledger:
    ledger: Ledger = current_app.extensions["ledger"]
    return ledger
