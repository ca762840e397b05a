"""Describes the inventory service's routes for /docs and /openapi.json."""

from typing import Final

from inventory_service.entrypoints.schemas import InventoryHealthResponse, ShipmentResponse, StockRequest, StockResponse
from rocketmq_broker import __version__
from service_runtime.http.api_document import ApiDescription, Described

DESCRIPTION: Final = ApiDescription(
    "Inventory service",
    __version__,
    {
        "PUT /stock/<path:article>": Described({200: StockResponse}, body=StockRequest),
        "GET /stock/<path:article>": Described({200: StockResponse}),
        "GET /orders/<order_id>/shipment": Described({200: ShipmentResponse}),
    },
    health=InventoryHealthResponse,
)
