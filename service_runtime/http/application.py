"""The Flask application of a service: its routes, and what guards them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from flask import Blueprint, Flask

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.http.documents import register_documents
from service_runtime.http.health import LivenessResponse, liveness_api
from service_runtime.http.lanes import Lane, keep_lanes
from service_runtime.http.problems import Problem, register_problems
from service_runtime.http.request_guard import guard_requests
from service_runtime.http.request_ids import name_requests
from service_runtime.http.write_guard import WriteGuard, guard_writes

_EVERYBODY: Final = WriteGuard()


def create_application(
    name: str,
    blueprints: Iterable[Blueprint],
    *,
    hosts: KnownHosts,
    lane_of: Mapping[str, Lane],
    problem_of: Mapping[type[Exception], Problem],
    max_body_bytes: int,
    description: ApiDescription,
    new_uuid: Callable[[], UUID],
    guard: WriteGuard = _EVERYBODY,
) -> Flask:
    """An application with these routes, /livez, a home page and /docs; each error is answered with a problem body.

    A request is served if it names one of `hosts`, has no larger body than `max_body_bytes`, and finds room in its lane: see
    `keep_lanes`. `problem_of` has the errors of the service itself, `description` what /docs says, and `guard`
    what is asked of requests that change something. `new_uuid` makes the ids of requests that have none.
    """
    app = Flask(name)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    for blueprint in (liveness_api, *blueprints):
        app.register_blueprint(blueprint)
    register_problems(app, problem_of)
    liveness = {"GET /livez": Described({200: LivenessResponse})}
    register_documents(app, replace(description, routes={**description.routes, **liveness}), problem_of)
    name_requests(app, new_uuid)
    # The guard comes first: a request that is not meant for the service takes no room in a lane.
    guard_requests(app, hosts)
    guard_writes(app, guard)
    keep_lanes(app, lane_of)
    return app
