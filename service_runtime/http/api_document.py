"""The OpenAPI 3.1 document of a service, generated from its routes, their docstrings and its pydantic models (by spectree).

The routes themselves stay as they are: spectree gets functions without a body that have the same routes and docstrings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from flask import Flask
from pydantic import BaseModel
from spectree import Response, SpecTree

_PROBLEMS: Final = {
    400: "Wrong input; `errors` name the fields",
    401: "The API key is missing or wrong",
    403: "A page of another site sent the request, or the key does not allow it",
    404: "Unknown, or not there yet",
    409: "The state does not allow it, or a rule refused it",
    413: "The body is too large",
    415: "The body is not declared as application/json",
    421: "Host is no name of this service",
    422: "The idempotency key was used for something else",
    429: "Too many requests by this caller; Retry-After says when",
    503: "Something is away, or too many requests at once; Retry-After says when",
}
_ALWAYS: Final = (400, 403, 404, 421, 503)
_WITH_BODY: Final = (401, 413, 415, 429)


class ProblemBody(BaseModel):
    """An error, as defined by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The input and answers of a route; its docstring describes it."""

    answers: Mapping[int, type[BaseModel]]
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    headers: type[BaseModel] | None = None
    problems: tuple[int, ...] = ()
    """Statuses of errors, beside those that each route has."""


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """The document's data about a service. Routes are named like lanes: "GET /orders/<order_id>"."""

    title: str
    version: str
    routes: Mapping[str, Described] = field(default_factory=dict)


def openapi_document(app: Flask, description: ApiDescription) -> dict[str, Any]:
    """Returns the document of the routes in `description`, in its order. Raises KeyError for a route that the service lacks."""
    spec = SpecTree(
        "flask",
        title=description.title,
        version=description.version,
        naming_strategy=lambda model: model.__name__,
        nested_naming_strategy=lambda _, nested: nested,
    )
    shadow = Flask("openapi")
    for number, (route, method, doc, described) in enumerate(_routes(app, description)):
        stub = _stub(doc)
        models: dict[str, Any] = {"json": described.body, "query": described.query, "headers": described.headers}
        answers = Response(**{f"HTTP_{status}": model for status, model in described.answers.items()})
        answers.add_model(500, ProblemBody)
        shadow.add_url_rule(
            route, f"route{number}", spec.validate(resp=answers, skip_validation=True, **models)(stub), methods=[method]
        )
    # `register` would add spectree's own pages, whose scripts come from other sites.
    spec.app = shadow
    with shadow.app_context():
        document: dict[str, Any] = spec.spec
    _complete(document, {(route, method): described for route, method, _, described in _routes(app, description)})
    return document


def _routes(app: Flask, description: ApiDescription) -> Iterator[tuple[str, str, str, Described]]:
    """Yields path, method, docstring and description of each route, in the order of the description."""
    endpoint_of = {(rule.rule, method): rule.endpoint for rule in app.url_map.iter_rules() for method in rule.methods or ()}
    for name, described in description.routes.items():
        method, _, route = name.partition(" ")
        yield route, method, app.view_functions[endpoint_of[route, method]].__doc__ or "", described


def _stub(doc: str) -> Any:
    def stub(**_: object) -> None:
        """Has the docstring of its route."""

    stub.__doc__ = doc
    return stub


def _complete(document: dict[str, Any], described: Mapping[tuple[str, str], Described]) -> None:
    """Adds the problems, which spectree knows as one JSON model only, and removes its own 422."""
    by_path = {(_path(route), method.lower()): one for (route, method), one in described.items()}
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            one = by_path[path, method]
            answers = {status: answer for status, answer in operation["responses"].items() if int(status) in one.answers}
            statuses = {*_ALWAYS, *(_WITH_BODY if one.body else ()), *one.problems} - one.answers.keys()
            problems = {str(status): {"description": _PROBLEMS[status], "content": content} for status in sorted(statuses)}
            operation["responses"] = answers | problems
            operation["operationId"] = f"{method} {path}".replace("/", "_").replace("{", "").replace("}", "").replace(" ", "")
    schemas = document["components"]["schemas"]
    document["components"]["schemas"] = {
        name: schema for name, schema in schemas.items() if not name.startswith("ValidationError")
    }


def _path(route: str) -> str:
    return route.replace("<path:", "<").replace("<", "{").replace(">", "}")
