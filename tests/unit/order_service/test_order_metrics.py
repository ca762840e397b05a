import pytest
from prometheus_client import CollectorRegistry

from order_service.adapters.order_metrics import counted
from order_service.service_layer.attempt import Attempt
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt
from tests.component.order_service.conftest import an_order


class Listener:
    """A listener that commits and returns UNKNOWN for check-backs, or raises an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        if self._error:
            raise self._error
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def test_each_decision_is_counted_under_its_topic_and_passed_on() -> None:
    registry = CollectorRegistry()
    listeners = counted({"orders": Listener(), "order_cancellations": Listener(ZeroDivisionError())}, registry)
    message, attempt = Message.of("orders", b""), Attempt(an_order())
    assert listeners["orders"].execute_local_transaction(message, attempt) is LocalTransactionState.COMMIT_MESSAGE
    assert listeners["orders"].check_local_transaction(message) is LocalTransactionState.UNKNOWN  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        listeners["order_cancellations"].execute_local_transaction(message, attempt)

    def value(name: str, topic: str, decision: str) -> float | None:
        return registry.get_sample_value(name, {"topic": topic, "decision": decision})

    assert value("order_local_transactions_total", "orders", "COMMIT_MESSAGE") == 1
    assert value("order_check_backs_total", "orders", "UNKNOWN") == 1
    assert value("order_local_transactions_total", "order_cancellations", "failed") == 1
