"""Rejects foreign requests before any code of the service."""

from flask import Flask, Response, request
from werkzeug.http import HTTP_STATUS_CODES

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.problems import problem_response

_JSON = "application/json"


def guard_requests(app: Flask, hosts: KnownHosts) -> None:
    """Answers only requests that name a known host, come from no other page, and carry JSON if they have a body."""

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
    """Returns the refusal of other types, which a form of any page may send without permission."""
    detail = f"the body must be {_JSON}, by a Content-Type header that says so; this one is {mimetype or 'of no type'}"
    response = problem_response(415, HTTP_STATUS_CODES[415], detail)
    response.headers["Accept-Post"] = _JSON
    return response
