"""The HTTP answers to the order service's errors."""

from typing import Final

from order_service.service_layer.order_store import HistoryDoubted
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from order_service.service_layer.placing import KeyReused, OrderRefused
from order_service.service_layer.sending import BrokerUnavailable, NotStored, TransactionExpired
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.http.problems import Problem

PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    OrderRefused: Problem(409, "Order refused"),
    KeyReused: Problem(422, "Idempotency key reused"),
    BrokerUnavailable: Problem(503, "Broker unavailable"),
    UnknownOrder: Problem(404, "Not Found"),
    ImpossibleNow: Problem(409, "Not possible in this state"),
    NotStored: Problem(503, "Database unavailable"),
    TransactionExpired: Problem(503, "Transaction expired"),
    HistoryDoubted: Problem(
        503, "Database in doubt", "this order database may be an old copy, in which a payment is missing; nothing was changed"
    ),
    DatabaseFailure: Problem(503, "Database unavailable", "the order database does not answer"),
}
