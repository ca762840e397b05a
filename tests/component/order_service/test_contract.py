"""The order service keeps to its OpenAPI document, whatever is asked within and beside it (schemathesis)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS, BrokerInProcess

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


OPERATIONS = ["get /orders", "post /orders", "get /orders/{order_id}", "get /orders/{order_id}/timeline",
              "post /orders/{order_id}/payment", "post /orders/{order_id}/cancellation", "get /transactions/{transaction_id}",
              "get /readyz", "get /healthz", "get /livez"]  # fmt: skip


TAKE_INPUT = [operation for operation in OPERATIONS if operation.startswith("post") or operation == "get /orders"]
"""What can be given them may be wrong as well."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BaseSchema]:
    """The service on a database of its own."""
    folder: Path = tmp_path_factory.mktemp("orders")
    engine = open_database(f"sqlite:///{folder}/orders.db", migrations=MIGRATIONS, start_timeout_s=10)
    store = SqlOrderStore(engine, World())
    broker = BrokerInProcess(transaction_listeners(store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=World().wall_ms))
    yield schemathesis.openapi.from_wsgi("/openapi.json", create_app(store, broker, World()))
    engine.dispose()


def test_each_operation_is_tried(api: BaseSchema) -> None:
    assert {operation.ok().label.lower() for operation in api.get_all_operations()} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        *((operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        *((wrong, GenerationMode.NEGATIVE) for wrong in TAKE_INPUT),
    ],
)
def test_each_answer_is_one_that_the_document_promises(api: BaseSchema, operation: str, mode: GenerationMode) -> None:
    method, path = operation.split(" ")

    @settings(max_examples=6, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(api[path][method.upper()].as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=list(CHECKS))

    ask()
