"""Describes the credit service's routes for /docs and /openapi.json."""

from typing import Final

from pydantic import ConfigDict, RootModel

from credit_service.entrypoints.health import CreditHealthResponse
from credit_service.entrypoints.repairs import RebuildRequest, RepairedResponse, ReverseRequest
from credit_service.entrypoints.schemas import CustomerCreditResponse, LimitQuery, OrderCreditResponse
from rocketmq_broker import __version__
from service_runtime.http.api_document import ApiDescription, Described


class RepairRequest(RootModel[ReverseRequest | RebuildRequest]):
    """The body of PUT /repairs/{repair_id}."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"action": "rebuild_balance", "customer": "ada", "reason": "a test"}]}
    )


DESCRIPTION: Final = ApiDescription(
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
