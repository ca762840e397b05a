from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from order_service.adapters.order_metrics import counted
from order_service.service_layer.attempt import Attempt
from rocketmq_broker.message import Message
from tests.component.order_service.conftest import an_order
from tests.unit.testing.listeners import COMMIT, UNKNOWN, Transactions


def test_each_decision_is_counted_under_its_topic_and_passed_on() -> None:
    registry = CollectorRegistry()
    failing = Mock()
    failing.execute_local_transaction.side_effect = ZeroDivisionError
    listeners = counted({"orders": Transactions(COMMIT, UNKNOWN), "order_cancellations": failing}, registry)
    message, attempt = Message.of("orders", b""), Attempt(an_order())
    assert listeners["orders"].execute_local_transaction(message, attempt) is COMMIT
    assert listeners["orders"].check_local_transaction(message) is UNKNOWN  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        listeners["order_cancellations"].execute_local_transaction(message, attempt)

    def value(name: str, topic: str, decision: str) -> float | None:
        return registry.get_sample_value(name, {"topic": topic, "decision": decision})

    assert value("order_local_transactions_total", "orders", "COMMIT_MESSAGE") == 1
    assert value("order_check_backs_total", "orders", "UNKNOWN") == 1
    assert value("order_local_transactions_total", "order_cancellations", "failed") == 1
