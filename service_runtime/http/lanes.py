"""Limits the concurrent requests of each kind, so that hanging requests of one kind leave threads for others.

Such a limit is called a lane. An order that waits for a hanging broker occupies a thread for seconds. Without lanes such orders
could occupy all threads, and health checks and reads would fail. A request for a full lane is answered with 503 at once.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Final

from flask import Flask, Response, g, request

from service_runtime.http.problems import problem_response

CHECKS_AT_ONCE: Final = 4
"""The maximum number of concurrent health checks that query databases and brokers, and so may hang with them."""
CHECKS: Final = ("GET /readyz", "GET /healthz")
THREADS_KEPT_FREE: Final = CHECKS_AT_ONCE + 2
"""The number of threads kept for those checks, for one reading request, and for /livez, which has no lane."""

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
    """Maps each route to its lane: one of the service's lanes (`own`), a lane for health checks, or a lane for all other routes.

    The last lane admits as many requests as the server's `threads` allow beside the other lanes.
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
    """Returns the request's method and route. A HEAD counts as a GET."""
    method = "GET" if request.method == "HEAD" else request.method
    return f"{method} {request.url_rule.rule if request.url_rule else ''}"
