"""The OpenAPI document, made from the request and response models."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from broker import __version__
from order_service.entrypoints.schemas import (
    CancellationRequest,
    CancelledResponse,
    HealthResponse,
    OrderPageResponse,
    OrderRequest,
    OrderResponse,
    PaymentRequest,
    PlacedResponse,
    TransactionResponse,
)
from service_runtime.health import LivenessResponse

_MODELS: tuple[type[BaseModel], ...] = (
    OrderRequest, PaymentRequest, CancellationRequest, PlacedResponse, OrderResponse, CancelledResponse, OrderPageResponse,
    TransactionResponse, HealthResponse, LivenessResponse,
)  # fmt: skip
_NOT_MEANT_FOR_US: Final = {"403": "Another site's page sent the request", "421": "Host is no name of this service"}


def openapi_document() -> dict[str, Any]:
    """The service's interface as OpenAPI 3.1."""
    _, schemas = models_json_schema([(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Order service", "version": __version__},
        "paths": {
            "/orders": {
                "post": {
                    "summary": "Places an order in a transaction with the broker",
                    "parameters": [_parameter("Idempotency-Key", "header", {"type": "string"})],
                    "requestBody": {"required": True, "content": _json_of(OrderRequest)},
                    "responses": {
                        "201": _answer(
                            "The order is placed: its transaction is COMMITTED, or PENDING until it is paid", PlacedResponse
                        ),
                        "202": _answer("Nobody can say yet; ask where `ask_later` says", PlacedResponse),
                    }
                    | _problems({"400": "Wrong input, naming the field", "409": "A rule refused the order", "413": "Too large"})
                    | _problems({"415": "The body is not declared as application/json", **_NOT_MEANT_FOR_US})
                    | _problems({"422": "This customer used the key for another order"})
                    | _problems({"503": "Broker or database unavailable, or too many orders at once; Retry-After says when"}),
                },
                "get": {
                    "summary": "A customer's orders, the newest first",
                    "parameters": [
                        _parameter("customer", "query", {"type": "string"}, required=True),
                        _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
                        _parameter("before", "query", {"type": "integer", "minimum": 1}),
                    ],
                    "responses": {"200": _answer("One page", OrderPageResponse)}
                    | _problems({"400": "Wrong input", "503": "Database unavailable", **_NOT_MEANT_FOR_US}),
                },
            },
            "/orders/{order_id}": _lookup("One order", "order_id", OrderResponse),
            "/orders/{order_id}/payment": _change("Pays an order that was to be paid later", PaymentRequest, OrderResponse, {}),
            "/orders/{order_id}/cancellation": _change(
                "Cancels an order",
                CancellationRequest,
                CancelledResponse,
                {"202": _answer("Nobody can say yet; ask where `ask_later` says", CancelledResponse)},
            ),
            "/transactions/{transaction_id}": _lookup("The state of a transaction", "transaction_id", TransactionResponse),
            "/livez": {
                "get": {
                    "summary": "Whether the process serves; asks neither database nor broker",
                    "responses": {"200": _answer("The process serves", LivenessResponse)},
                }
            },
            "/readyz": _check("Whether orders can be placed: for whoever sends requests here or elsewhere"),
            "/healthz": _check("All that is known of the service's health: for people and monitoring"),
        },
        "components": {"schemas": schemas["$defs"]},
    }


def _check(summary: str) -> dict[str, Any]:
    return {
        "get": {
            "summary": summary,
            "responses": {
                "200": _answer("Database and broker answer", HealthResponse),
                "503": _answer("One of them does not", HealthResponse),
            },
        }
    }


def _change(summary: str, request: type[BaseModel], answer: type[BaseModel], more: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "parameters": [_parameter("order_id", "path", {"type": "string"}, required=True)],
            "requestBody": {"required": True, "content": _json_of(request)},
            "responses": {"200": _answer("It is so now; it may have been so before", answer), **more}
            | _problems({"400": "Wrong input, naming the field", "404": "No order has this id", "413": "Too large"})
            | _problems({"409": "The order's state does not allow it", "415": "The body is not declared as application/json"})
            | _problems({"503": "Broker or database unavailable, or too many orders at once", **_NOT_MEANT_FOR_US}),
        }
    }


def _lookup(summary: str, name: str, model: type[BaseModel]) -> dict[str, Any]:
    return {
        "get": {
            "summary": summary,
            "parameters": [_parameter(name, "path", {"type": "string"}, required=True)],
            "responses": {"200": _answer("Found", model)}
            | _problems({"404": "Unknown, or not decided yet", "503": "Database unavailable", **_NOT_MEANT_FOR_US}),
        }
    }


def _parameter(name: str, place: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _json_of(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}


def _answer(description: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": description, "content": _json_of(model)}


def _problems(descriptions: dict[str, str]) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"type": "object"}}}
    return {status: {"description": description, "content": content} for status, description in descriptions.items()}
