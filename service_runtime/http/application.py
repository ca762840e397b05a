"""Creates the Flask application of a service, with its routes, guards and documents."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from flask import Blueprint, Flask

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.http.documents import register_documents
from service_runtime.http.health import LivenessResponse, liveness_api
from service_runtime.http.problem import Problem
from service_runtime.http.problems import register_problems
from service_runtime.http.requests import RequestLane, guard_requests, keep_lanes, lanes_of, name_requests
from service_runtime.http.write_guard import WriteGuard, guard_writes

_UNRESTRICTED: Final = WriteGuard()


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
    own_lanes: Mapping[str, RequestLane] | None = None,
    guard: WriteGuard = _UNRESTRICTED,
) -> Flask:
    """Returns an application with these routes, /livez, a home page and /docs. Each error response has a problem body.

    A request is served if its Host is one of `hosts`, its body has at most `max_body_bytes`, and its lane (a limit of concurrent
    requests) is not full; see `lanes_of` for `own_lanes` and `threads`. `problem_of` maps the service's errors, `description`
    describes the routes, and `guard` restricts requests that change data. `new_uuid` creates an id for each request that has
    none.
    """
    app = Flask(name)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    for blueprint in (liveness_api, *blueprints):
        app.register_blueprint(blueprint)
    register_problems(app, problem_of)
    checks = {
        "GET /readyz": Described({200: description.ready}),
        "GET /healthz": Described({200: description.health, 503: description.health}),
        "GET /livez": Described({200: LivenessResponse}),
    }
    problems = (*problem_of.values(), *description.problems)
    register_documents(app, replace(description, routes={**description.routes, **checks}, problems=problems))
    name_requests(app, new_uuid)
    # The guard comes first, so that a rejected request takes no room in a lane.
    guard_requests(app, hosts)
    guard_writes(app, guard)
    keep_lanes(app, lanes_of(description.routes, own_lanes or {}, threads))
    return app
