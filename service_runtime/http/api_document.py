"""Builds the OpenAPI 3.1 document of a service from its routes, their docstrings and its pydantic models."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service_runtime.http.health import ReadyResponse
from service_runtime.http.problem import Problem

_PROBLEMS: Final = {
    400: "Invalid input; `errors` names the fields",
    401: "The API key is missing or wrong",
    403: "A page of another site sent the request, or the key is missing or wrong",
    404: "Not found, or not processed yet",
    409: "Not allowed in the current state, or refused by a rule",
    413: "The body is too large",
    415: "Content-Type is not application/json",
    421: "Host is not a name of this service",
    422: "The idempotency key was used for a different request",
    429: "Too many requests by this caller; see Retry-After",
    503: "A dependency is unavailable, or there are too many requests; see Retry-After",
}
_ALWAYS: Final = (400, 403, 404, 421, 503)
_WITH_BODY: Final = (401, 413, 415, 429)
_SCHEMA: Final = "#/components/schemas/"

Parameter = dict[str, Any]
Schemas = dict[str, Any]


class ProblemBody(BaseModel):
    """An error, as defined by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The input and the responses of a route. The route's docstring is its description."""

    answers: Mapping[int, type[BaseModel]]
    body: type[BaseModel] | None = None
    """The model of the request's body. /docs offers the first example of its JSON schema, or an empty object."""
    query: type[BaseModel] | None = None
    headers: type[BaseModel] | None = None
    problems: tuple[int, ...] = ()
    """The statuses of errors, in addition to those that all routes have."""


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """The description of a service. The keys of the routes look like "GET /orders/<order_id>"."""

    title: str
    version: str
    routes: Mapping[str, Described]
    health: type[BaseModel]
    """The response of /healthz."""
    ready: type[BaseModel] = ReadyResponse
    """The response of /readyz when nothing is missing."""
    problems: tuple[Problem, ...] = ()
    """The problems of errors that define their own response."""


def openapi_document(app: Flask, description: ApiDescription) -> dict[str, Any]:
    """Returns the document of the routes in `description`. Raises KeyError for a route that the application lacks."""
    schemas = _schemas(description)
    endpoint_of = {(rule.rule, method): rule.endpoint for rule in app.url_map.iter_rules() for method in rule.methods or ()}
    paths: dict[str, dict[str, Any]] = {}
    for name, described in description.routes.items():
        method, _, route = name.partition(" ")
        says = inspect.getdoc(app.view_functions[endpoint_of[route, method]]) or ""
        paths.setdefault(_path(route), {})[method.lower()] = _operation(method, route, says, described, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": description.title, "version": description.version},
        "tags": [],
        "security": [],
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schemas(description: ApiDescription) -> Schemas:
    """Returns the schemas of the routes' models and of the nested models, keyed by class name."""
    of_routes = [(one.body, one.query, one.headers, *one.answers.values()) for one in description.routes.values()]
    models = dict.fromkeys(model for models in (*of_routes, (ProblemBody,)) for model in models if model is not None)
    _, together = models_json_schema([(model, "validation") for model in models], ref_template=_SCHEMA + "{model}")
    schemas: Schemas = together["$defs"]
    return schemas


def _operation(method: str, route: str, says: str, described: Described, schemas: Schemas) -> dict[str, Any]:
    path = _path(route)
    summary, _, rest = says.partition("\n")
    operation = {
        "summary": summary,
        "description": rest.strip(),
        "operationId": f"{method.lower()} {path}".replace("/", "_").replace("{", "").replace("}", "").replace(" ", ""),
        "tags": [],
        "parameters": [
            *(
                _parameter("path", name, {"type": "string", "format": "path"} if has_slashes else {"type": "string"}, True)
                for has_slashes, name in re.findall(r"<(path:)?(\w+)>", route)
            ),
            *_parameters("query", described.query, schemas),
            *_parameters("header", described.headers, schemas),
        ],
        "responses": _responses(described),
    }
    if described.body is not None:
        content = _content("application/json", described.body)
        content["application/json"]["example"] = next(iter(schemas[described.body.__name__].get("examples", ())), {})
        operation["requestBody"] = {"content": content, "required": True}
    return operation


def _parameters(place: str, model: type[BaseModel] | None, schemas: Schemas) -> list[Parameter]:
    """Returns a parameter for each field of the model."""
    if model is None:
        return []
    schema = schemas[model.__name__]
    required = schema.get("required", ())
    return [_parameter(place, name, found, name in required) for name, found in schema["properties"].items()]


def _parameter(place: str, name: str, schema: dict[str, Any], is_required: bool) -> Parameter:
    description = schema.get("description", "")
    return {"in": place, "name": name, "required": is_required, "description": description, "schema": schema}


def _responses(described: Described) -> dict[str, Any]:
    answers = {
        str(status): {"description": HTTPStatus(status).phrase, "content": _content("application/json", model)}
        for status, model in described.answers.items()
    }
    statuses = {*_ALWAYS, *(_WITH_BODY if described.body else ()), *described.problems} - described.answers.keys()
    problem = _content("application/problem+json", ProblemBody)
    return answers | {str(status): {"description": _PROBLEMS[status], "content": problem} for status in sorted(statuses)}


def _content(content_type: str, model: type[BaseModel]) -> dict[str, Any]:
    return {content_type: {"schema": {"$ref": _SCHEMA + model.__name__}}}


def _path(route: str) -> str:
    return route.replace("<path:", "<").replace("<", "{").replace(">", "}")
