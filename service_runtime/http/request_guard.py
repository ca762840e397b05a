"""Rejects requests with a foreign Host or Origin, or a wrong Content-Type, before they reach the routes."""

from flask import Flask, Response, request
from werkzeug.http import HTTP_STATUS_CODES

from rocketmq_broker.known_hosts import KnownHosts
from service_runtime.http.problems import problem_response

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
