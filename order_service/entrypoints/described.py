"""Describes the order service's routes for /docs and /openapi.json."""

from typing import Final

from order_service.entrypoints.schemas import (
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
from order_service.service_layer.attempt import Outcome
from rocketmq_broker import __version__
from service_runtime.http.api_document import ApiDescription, Described

DESCRIPTION: Final = ApiDescription(
    "Order service",
    __version__,
    {
        "POST /orders": Described(
            {201: PlacedResponse, 202: PlacedResponse}, body=OrderRequest, headers=OrderHeaders, problems=(409, 422)
        ),
        "GET /orders": Described({200: OrderPageResponse}, query=OrderPageQuery),
        "GET /orders/<order_id>": Described({200: OrderResponse}),
        "GET /orders/<order_id>/timeline": Described({200: TimelineResponse}),
        "POST /orders/<order_id>/payment": Described({200: OrderResponse}, body=PaymentRequest, problems=(409,)),
        "POST /orders/<order_id>/cancellation": Described(
            {200: CancelledResponse, 202: CancelledResponse}, body=CancellationRequest, problems=(409,)
        ),
        "GET /transactions/<transaction_id>": Described({200: TransactionResponse}),
    },
    health=OrderHealthResponse,
    ready=OrderHealthResponse,
    problems=tuple(outcome.problem for outcome in Outcome if outcome.problem is not None),
)
