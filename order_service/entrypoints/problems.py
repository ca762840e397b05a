"""Errors as RFC 9457 problem bodies (application/problem+json); one table maps them to their status."""

import logging
from typing import Final

from flask import Flask, Response, json, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException, InternalServerError

from order_service.adapters.order_store import OrderStoreError
from order_service.service_layer.placing import (
    BrokerUnavailable,
    DatabaseUnavailable,
    KeyReused,
    OrderRefused,
    TransactionExpired,
)

logger = logging.getLogger(__name__)

_STATUS_OF: Final[dict[type[Exception], tuple[int, str]]] = {
    OrderRefused: (409, "Order refused"),
    KeyReused: (422, "Idempotency key reused"),
    BrokerUnavailable: (503, "Broker unavailable"),
    DatabaseUnavailable: (503, "Database unavailable"),
    TransactionExpired: (503, "Transaction expired"),
    OrderStoreError: (503, "Database unavailable"),
}
_RETRY_AFTER_S: Final = "5"


def problem(status: int, title: str, detail: str, errors: list[dict[str, str]] | None = None) -> Response:
    """A problem body; `errors` name the fields that are wrong."""
    body: dict[str, object] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    if errors:
        body["errors"] = errors
    response = Response(json.dumps(body), status=status, content_type="application/problem+json")
    if status == 503:
        response.headers["Retry-After"] = _RETRY_AFTER_S
    return response


def register_problems(app: Flask) -> None:
    """Answers every error of the application with a problem body."""
    app.register_error_handler(ValidationError, _wrong_input)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
    for kind in _STATUS_OF:
        app.register_error_handler(kind, _known)


def _wrong_input(error: ValidationError) -> Response:
    errors = [{"field": _path(found["loc"]) or "body", "message": found["msg"]} for found in error.errors(include_url=False)]
    return problem(400, "Bad Request", "; ".join(f"{wrong['field']}: {wrong['message']}" for wrong in errors[:5]), errors)


def _path(location: tuple[int | str, ...]) -> str:
    """items[0].price_cents"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _known(error: Exception) -> Response:
    status, title = next(found for kind, found in _STATUS_OF.items() if isinstance(error, kind))
    detail = "the order database does not answer" if isinstance(error, OrderStoreError) else str(error)
    return problem(status, title, detail)


def _http_error(error: HTTPException) -> Response:
    code = error.code or 500
    response = problem(code, error.name, error.description or error.name)
    for name, value in error.get_headers(request.environ):
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def _unexpected(error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(500, InternalServerError().name, "something went wrong here; the log says more")
