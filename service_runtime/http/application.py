"""Creates the Flask application of a service, with its routes and guards, and names each request.

The name is the value of the X-Request-Id header, or a new id. The response and all log lines contain it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import Final
from uuid import UUID

from flask import Blueprint, Flask, Response, g, request
from werkzeug.http import HTTP_STATUS_CODES

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.http.documents import register_documents
from service_runtime.http.health import LivenessResponse, liveness_api
from service_runtime.http.lanes import RequestLane, keep_lanes, lanes_of
from service_runtime.http.problem import Problem
from service_runtime.http.problems import problem_response, register_problems
from service_runtime.http.write_guard import WriteGuard, guard_writes
from service_runtime.observing.log_context import current_ids, logging_about

_UNRESTRICTED: Final = WriteGuard()
_NO_LANES: Final[Mapping[str, RequestLane]] = MappingProxyType({})


def create_application(
    name: str,
    blueprints: Iterable[Blueprint],
    *,
    hosts: KnownHosts,
    threads: int,
    problem_of: Mapping[type[Exception], Problem],
    max_body_bytes: int,
    description: ApiDescription,
    new_uuid: Callable[[], UUID],
    own_lanes: Mapping[str, RequestLane] = _NO_LANES,
    guard: WriteGuard = _UNRESTRICTED,
) -> Flask:
    """Returns an application with these routes, /livez, a home page and /docs. Each error is answered with a problem body.

    A request is served if its Host is one of `hosts`, its body has at most `max_body_bytes`, and its lane (a limit of concurrent
    requests) is not full; see `lanes_of` for `own_lanes` and `threads`. `problem_of` maps the service's errors, `description`
    describes the routes, and `guard` restricts requests that change data. `new_uuid` creates the ids of requests without one.
    """
    app = Flask(name)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    for blueprint in (liveness_api, *blueprints):
        app.register_blueprint(blueprint)
    register_problems(app, problem_of)
    routes = {**description.routes, **_checks(description), "GET /livez": Described({200: LivenessResponse})}
    problems = (*problem_of.values(), *description.problems)
    register_documents(app, replace(description, routes=routes, problems=problems))
    name_requests(app, new_uuid)
    # The guard comes first, so that a rejected request takes no room in a lane.
    guard_requests(app, hosts)
    guard_writes(app, guard)
    keep_lanes(app, lanes_of(description.routes, own_lanes, threads))
    return app


def _checks(description: ApiDescription) -> dict[str, Described]:
    health = description.health
    if health is None:
        return {}
    return {"GET /readyz": Described({200: description.ready}), "GET /healthz": Described({200: health, 503: health})}


HEADER: Final = "X-Request-Id"
_USABLE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def name_requests(app: Flask, new_uuid: Callable[[], UUID]) -> None:
    """Assigns an id to each request of `app`, before any other processing."""

    def begin() -> None:
        given = request.headers.get(HEADER, "")
        request_id = given if _USABLE.fullmatch(given) else new_uuid().hex
        g.about_request = ExitStack()
        g.about_request.enter_context(logging_about(request_id=request_id))

    def add_header(response: Response) -> Response:
        request_id = current_ids().get("request_id")
        if request_id is not None:
            response.headers[HEADER] = request_id
        return response

    def end(_error: BaseException | None) -> None:
        about: ExitStack | None = g.pop("about_request", None)
        if about is not None:
            about.close()

    app.before_request(begin)
    app.after_request(add_header)
    app.teardown_request(end)


_JSON = "application/json"


def guard_requests(app: Flask, hosts: KnownHosts) -> None:
    """Rejects requests with an unknown Host, requests from pages of other sites, and POST requests without JSON."""

    def turn_away() -> Response | None:
        refusal = hosts.refusal(
            request.method,
            request.environ.get("HTTP_HOST"),
            request.headers.get("Origin"),
            request.headers.get("Sec-Fetch-Site"),
        )
        if refusal is not None:
            hint = ", or add the name to its known hosts" if refusal.status == 421 else ""
            return problem_response(refusal.status, HTTP_STATUS_CODES[refusal.status], refusal.detail + hint)
        if request.method == "POST" and request.routing_exception is None and request.mimetype != _JSON:
            return _not_json(request.mimetype)
        return None

    app.before_request(turn_away)


def _not_json(mimetype: str) -> Response:
    """Returns the 415 response. Other types are rejected because a form of any page may send them."""
    detail = f"Content-Type must be {_JSON}, not {mimetype or 'missing'}"
    response = problem_response(415, HTTP_STATUS_CODES[415], detail)
    response.headers["Accept-Post"] = _JSON
    return response
