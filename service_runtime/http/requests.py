"""Assigns an id to each request, rejects requests for unknown hosts or from other sites, and limits concurrency.

The id is the value of the X-Request-Id header, or a new one. The response and all log lines contain it.

A lane limits the concurrent requests of one kind, so that hanging requests of one kind leave threads for other kinds. An order
that waits for a hanging broker occupies a thread for seconds. Without lanes such orders could occupy all threads, and health
checks and reads would fail. If the lane is full, the response is an immediate 503.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Final
from uuid import UUID

from flask import Flask, Response, g, request
from pydantic import BaseModel
from werkzeug.http import HTTP_STATUS_CODES

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.problems import problem_response
from service_runtime.observing.context import current_ids, logging_about


def json_response(body: BaseModel, status: int = 200) -> Response:
    """Returns a JSON response with this HTTP status."""
    return Response(body.model_dump_json(), status=status, content_type="application/json")


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
            # Other types are rejected because a form of any page may send them.
            detail = f"Content-Type must be {_JSON}, not {request.mimetype or 'missing'}"
            response = problem_response(415, HTTP_STATUS_CODES[415], detail)
            response.headers["Accept-Post"] = _JSON
            return response
        return None

    app.before_request(turn_away)


CHECKS_AT_ONCE: Final = 4
"""The maximum number of concurrent health checks. They query databases and brokers, and may therefore hang."""
CHECKS: Final = ("GET /readyz", "GET /healthz")
THREADS_KEPT_FREE: Final = CHECKS_AT_ONCE + 2
"""The number of threads reserved for health checks, for one reading request, and for /livez, which has no lane."""

_RETRY_AFTER_S: Final = 1


class RequestLane:
    """Admits at most `limit` concurrent requests. Thread-safe."""

    def __init__(self, limit: int, title: str, detail: str) -> None:
        """`title` and `detail` describe the problem that is returned if the lane is full."""
        self.limit = limit
        self.title = title
        self.detail = detail
        self._free = threading.BoundedSemaphore(limit)

    def enter(self) -> bool:
        """Enters the lane without waiting. Returns False if it is full."""
        return self._free.acquire(blocking=False)

    def leave(self) -> None:
        """Leaves the lane, so that another request can enter it."""
        self._free.release()


def lanes_of(routes: Iterable[str], own: Mapping[str, RequestLane], threads: int) -> dict[str, RequestLane]:
    """Maps each route to its lane.

    A lane is one of the service's lanes (`own`), a lane for health checks, or a lane for all other routes. The last
    lane may use all of `threads` except the limits of the other lanes and one thread for /livez, which has no lane.
    """
    limit = threads - sum(lane.limit for lane in {*own.values()}) - THREADS_KEPT_FREE + 1
    reading = RequestLane(limit, "Too many requests at once", f"{limit} requests are being answered; try again soon")
    checks = RequestLane(
        CHECKS_AT_ONCE, "Checks under way", f"{CHECKS_AT_ONCE} earlier checks are still waiting for their answers"
    )
    return {**dict.fromkeys(routes, reading), **dict.fromkeys(CHECKS, checks), **own}


def keep_lanes(app: Flask, lane_of: Mapping[str, RequestLane]) -> None:
    """Passes each request through the lane of its method and route, such as "GET /orders/<order_id>".

    Requests without a lane are not limited.
    """

    def enter() -> Response | None:
        # A HEAD counts as a GET.
        method = "GET" if request.method == "HEAD" else request.method
        lane = lane_of.get(f"{method} {request.url_rule.rule if request.url_rule else ''}")
        if lane is None:
            return None
        if not lane.enter():
            return problem_response(503, lane.title, lane.detail, retry_after_s=_RETRY_AFTER_S)
        g.lane = lane
        return None

    def leave(_error: BaseException | None) -> None:
        lane: RequestLane | None = g.pop("lane", None)
        if lane is not None:
            lane.leave()

    app.before_request(enter)
    app.teardown_request(leave)
