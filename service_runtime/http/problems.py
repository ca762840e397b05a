"""Responds to errors with RFC 9457 problem bodies (application/problem+json). Each service maps its errors in one table."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from flask import Flask, Response, json, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException, InternalServerError

from service_runtime.http.problem import ErrorWithProblem, Problem

_RETRY_AFTER_S: Final = 5

logger = logging.getLogger(__name__)


def register_problems(app: Flask, problem_of: Mapping[type[Exception], Problem]) -> None:
    """Registers error handlers that respond with problem bodies. `problem_of` maps the service's own errors."""

    def answer(problem: Problem, error: Exception) -> Response:
        if problem.detail is not None:
            logger.warning("%s %s: %s", request.method, request.path, error)
        return problem_response(problem.status, problem.title, problem.detail or str(error))

    app.register_error_handler(ValidationError, _wrong_input)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)
    app.register_error_handler(ErrorWithProblem, lambda error: answer(error.problem, error))
    for kind, problem in problem_of.items():
        app.register_error_handler(kind, partial(answer, problem))


def anchor_of(title: str) -> str:
    """Returns the anchor of a problem's title in /docs."""
    return "-".join(title.lower().split())


def problem_response(
    status: int,
    title: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    *,
    retry_after_s: int = _RETRY_AFTER_S,
) -> Response:
    """Returns a problem response. `errors` names the invalid fields. A 503 response gets a Retry-After header."""
    problem_type = f"/docs#{anchor_of(title)}" if Problem(status, title).has_type else "about:blank"
    body: dict[str, object] = {"type": problem_type, "title": title, "status": status, "detail": detail}
    if errors:
        body["errors"] = errors
    response = Response(json.dumps(body), status=status, content_type="application/problem+json")
    if status == 503:
        response.headers["Retry-After"] = str(retry_after_s)
    return response


def _wrong_input(error: ValidationError) -> Response:
    errors = [{"field": _path(found["loc"]) or "body", "message": found["msg"]} for found in error.errors(include_url=False)]
    detail = "; ".join(f"{wrong['field']}: {wrong['message']}" for wrong in errors[:5])
    return problem_response(400, "Bad Request", detail, errors)


def _path(location: tuple[int | str, ...]) -> str:
    """Formats a field's location, such as items[0].price_cents."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _http_error(error: HTTPException) -> Response:
    response = problem_response(error.code or 500, error.name, error.description or error.name)
    for name, value in error.get_headers(request.environ):
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def _unexpected(error: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem_response(500, InternalServerError().name, "internal error; see the service's log")
