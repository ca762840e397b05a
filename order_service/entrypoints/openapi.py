"""The OpenAPI document, made from the request and response models."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from order_service.entrypoints.schemas import (
    HealthResponse,
    OrderPageResponse,
    OrderRequest,
    OrderResponse,
    PlacedResponse,
    TransactionResponse,
)

_MODELS: tuple[type[BaseModel], ...] = (
    OrderRequest, PlacedResponse, OrderResponse, OrderPageResponse, TransactionResponse, HealthResponse,
)  # fmt: skip


def openapi_document() -> dict[str, Any]:
    """The service's interface as OpenAPI 3.1."""
    _, schemas = models_json_schema([(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Order service", "version": _version()},
        "paths": {
            "/orders": {
                "post": {
                    "summary": "Places an order in a transaction with the broker",
                    "parameters": [_parameter("Idempotency-Key", "header", {"type": "string"})],
                    "requestBody": {"required": True, "content": _json_of(OrderRequest)},
                    "responses": {
                        "201": _answer("The transaction committed", PlacedResponse),
                        "202": _answer("Nobody can say yet; ask where `ask_later` says", PlacedResponse),
                    }
                    | _problems({"400": "Wrong input, naming the field", "409": "A rule refused the order", "413": "Too large"})
                    | _problems({"422": "The key was used for another order", "503": "Broker or database unavailable"}),
                },
                "get": {
                    "summary": "A customer's orders, the newest first",
                    "parameters": [
                        _parameter("customer", "query", {"type": "string"}, required=True),
                        _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
                        _parameter("before", "query", {"type": "integer", "minimum": 1}),
                    ],
                    "responses": {"200": _answer("One page", OrderPageResponse)} | _problems({"400": "Wrong input"}),
                },
            },
            "/orders/{order_id}": _lookup("One committed order", "order_id", OrderResponse),
            "/transactions/{transaction_id}": _lookup("What became of a transaction", "transaction_id", TransactionResponse),
            "/healthz": {
                "get": {
                    "summary": "Whether database and broker answer",
                    "responses": {"200": _answer("Both do", HealthResponse), "503": _answer("One does not", HealthResponse)},
                }
            },
        },
        "components": {"schemas": schemas["$defs"]},
    }


def _lookup(summary: str, name: str, model: type[BaseModel]) -> dict[str, Any]:
    return {
        "get": {
            "summary": summary,
            "parameters": [_parameter(name, "path", {"type": "string"}, required=True)],
            "responses": {"200": _answer("Found", model)} | _problems({"404": "Unknown, or not decided yet"}),
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


def _version() -> str:
    try:
        return version("transactional-messages")
    except PackageNotFoundError:
        return "0"
