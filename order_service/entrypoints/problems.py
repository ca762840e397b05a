"""How the order service's errors are answered over HTTP."""

from typing import Final

from order_service.adapters.order_store import OrderStoreError
from order_service.service_layer.placing import (
    BrokerUnavailable,
    DatabaseUnavailable,
    KeyReused,
    OrderRefused,
    TransactionExpired,
)
from service_runtime.problems import Problem

PROBLEM_OF: Final[dict[type[Exception], Problem]] = {
    OrderRefused: Problem(409, "Order refused"),
    KeyReused: Problem(422, "Idempotency key reused"),
    BrokerUnavailable: Problem(503, "Broker unavailable"),
    DatabaseUnavailable: Problem(503, "Database unavailable"),
    TransactionExpired: Problem(503, "Transaction expired"),
    OrderStoreError: Problem(503, "Database unavailable", "the order database does not answer"),
}
