"""Maps each error of the order service to its HTTP problem. `Outcome` has the problems of failed transactions."""

from typing import Final

from order_service.service_layer.order_store import HistoryDoubted
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from order_service.service_layer.placing import KeyReused
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.http.problem import Problem

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
