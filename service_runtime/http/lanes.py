"""Lanes: limits of the requests of one kind in work, so that one kind that hangs leaves threads for the others.

An order that waits for a hanging broker keeps a thread for seconds. Without lanes enough of them keep all threads, and nobody can
read an order, nor ask whether the service lives. A request for a full lane is answered 503 at once.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Final

from flask import Flask, Response, g, request

from service_runtime.http.problems import problem_response

CHECKS_AT_ONCE: Final = 4
"""Health checks that ask databases and brokers, and so may hang with them."""
CHECKS: Final = ("GET /readyz", "GET /healthz")
THREADS_KEPT_FREE: Final = CHECKS_AT_ONCE + 2
"""Threads for those checks, for one request that reads, and for /livez, which asks no lane: it always has a thread."""

_RETRY_AFTER_S: Final = 1


class RequestLane:
    """At most `limit` requests at once; safe to use from several threads."""

    def __init__(self, limit: int, title: str, detail: str) -> None:
        """`title` and `detail` are the answer to a request for a full lane."""
        self.limit = limit
        self.title = title
        self.detail = detail
        self._free = threading.BoundedSemaphore(limit)

    def enter(self) -> bool:
        """Enters if there is room, and returns whether there was. Does not wait."""
        return self._free.acquire(blocking=False)

    def leave(self) -> None:
        """Leaves room for another request."""
        self._free.release()


def lanes_of(routes: Iterable[str], own: Mapping[str, RequestLane], threads: int) -> dict[str, RequestLane]:
    """Returns the lane of each route: a service's own lanes, one for health checks, and one for all other routes.

    The last one has the rest of the server's `threads`.
    """
    limit = threads - sum(lane.limit for lane in {*own.values()}) - THREADS_KEPT_FREE + 1
    reading = RequestLane(limit, "Too many requests at once", f"{limit} requests are being answered; try again soon")
    checks = RequestLane(
        CHECKS_AT_ONCE, "Checks under way", f"{CHECKS_AT_ONCE} earlier checks are still waiting for their answers"
    )
    return {**dict.fromkeys(routes, reading), **dict.fromkeys(CHECKS, checks), **own}


def keep_lanes(app: Flask, lane_of: Mapping[str, RequestLane]) -> None:
    """Passes each request through the lane of its method and route, "GET /orders/<order_id>"; others are not bounded."""

    def enter() -> Response | None:
        lane = lane_of.get(_route())
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


def _route() -> str:
    """Returns the method and the route of the request; a HEAD counts as a GET."""
    method = "GET" if request.method == "HEAD" else request.method
    return f"{method} {request.url_rule.rule if request.url_rule else ''}"
