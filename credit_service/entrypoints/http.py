"""The credit service over HTTP: the Flask application and its routes."""

from typing import Final

from flask import Blueprint, Flask, Response, abort, current_app, request
from pydantic import BaseModel

from credit_service.adapters.ledger import Ledger, LedgerUnavailable
from credit_service.entrypoints.health import HealthSources, health_api
from credit_service.entrypoints.schemas import CustomerCreditQuery, CustomerCreditResponse
from service_runtime.known_hosts import KnownHosts
from service_runtime.lanes import THREADS_KEPT_FREE, checks_lane, keep_lanes, reading_lane
from service_runtime.problems import Problem, register_problems
from service_runtime.request_guard import guard_requests

_LOOPBACK: Final = KnownHosts()

credits_api = Blueprint("credits", __name__)

_PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    LedgerUnavailable: Problem(503, "Database unavailable", "the credit database does not answer"),
}


def create_app(ledger: Ledger, health: HealthSources, *, hosts: KnownHosts = _LOOPBACK, threads: int = 16) -> Flask:
    """The application, on a database that is open; `health` answers for all that belongs to the service.

    It answers requests that name one of `hosts`, on the server's `threads`.
    """
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = 1024
    app.extensions["ledger"] = ledger
    app.extensions["health"] = health
    app.register_blueprint(credits_api)
    app.register_blueprint(health_api)
    register_problems(app, _PROBLEM_OF)
    guard_requests(app, hosts)
    reading, checks = reading_lane(threads - THREADS_KEPT_FREE + 1), checks_lane()
    keep_lanes(app, {"GET /customers/<path:customer>/credit": reading, "GET /readyz": checks, "GET /healthz": checks})
    return app


@credits_api.get("/customers/<path:customer>/credit")
def get_credit(customer: str) -> Response:
    """A customer's balance and latest credits: one credit point for each full unit of currency."""
    query = CustomerCreditQuery.model_validate({**request.args.to_dict(), "customer": customer})
    found = None if "\x00" in query.customer else _ledger().find_customer(query.customer, max_entries=query.limit)
    if found is None:
        abort(404, "this customer has no credit")
    return _json(CustomerCreditResponse.of(found))


def _ledger() -> Ledger:
    ledger: Ledger = current_app.extensions["ledger"]
    return ledger


def _json(body: BaseModel) -> Response:
    return Response(body.model_dump_json(), content_type="application/json")
