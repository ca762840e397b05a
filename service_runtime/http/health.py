"""The common parts of the health checks: /livez, the status words, and the HTTP status."""

from collections.abc import Sequence
from typing import Final, Literal

from flask import Blueprint, Response
from pydantic import BaseModel

from service_runtime.http.requests import json_response

liveness_api = Blueprint("liveness", __name__)

NOT_READY: Final = "Not ready"
"""The title of /readyz's problem response."""

Word = Literal["ok", "unreachable"]
"""The status of one part. `unreachable` means that the part cannot be used now, for any reason."""
Status = Literal["ok", "attention", "degraded"]
"""The status of a service.

ok: everything works; attention: an operator should act, but requests are served; degraded: something is unavailable.
"""


class LivenessResponse(BaseModel):
    """The body of the response of /livez, which means that the process serves requests."""

    status: Literal["ok"] = "ok"


class ReadyResponse(BaseModel):
    """The response of /readyz when work is possible."""

    status: Literal["ok"] = "ok"


@liveness_api.get("/livez")
def get_liveness() -> Response:
    """Returns 200 while the process serves requests. Does not check the database or the broker: a restart would not fix them."""
    return json_response(LivenessResponse())


def word(is_ok: bool) -> Word:
    """Returns the status of a part as a word."""
    return "ok" if is_ok else "unreachable"


def status_of(is_whole: bool, attention: Sequence[str]) -> Status:
    """Returns the status of a consuming service. `is_whole` is True if the service can do its work now."""
    if not is_whole:
        return "degraded"
    return "attention" if attention else "ok"


def http_status(status: Status) -> int:
    """Returns 503 for a degraded service, otherwise 200."""
    return 503 if status == "degraded" else 200
