"""The common part of all health checks: /livez, the words, and the HTTP status."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from flask import Blueprint, Response
from pydantic import BaseModel

from service_runtime.failing.holds import Holding
from service_runtime.http.responses import json_response

liveness_api = Blueprint("liveness", __name__)

NOT_READY: Final = "Not ready"
"""The title of the problem that /readyz answers."""

Word = Literal["ok", "unreachable"]
"""unreachable: no work can be done with it now, for whatever reason."""
Status = Literal["ok", "attention", "degraded"]
"""ok: all works; attention: a person should look, although requests are served; degraded: something is away."""


class LivenessResponse(BaseModel):
    """The process serves."""

    status: Literal["ok"] = "ok"


class ReadyResponse(BaseModel):
    """Work is possible now."""

    status: Literal["ok"] = "ok"


class WithStatus(Protocol):
    """A health report with a status."""

    @property
    def status(self) -> Status:
        """The whole report in one word."""


class NeedsAttention(Protocol):
    """A part that may have something for a person to look after."""

    def attention(self) -> list[str]:
        """Returns what that is, each in one line with what to do."""


@liveness_api.get("/livez")
def get_liveness() -> Response:
    """200 as long as the process serves. The check asks neither database nor broker: a new start would not bring them back."""
    return json_response(LivenessResponse())


def word(is_ok: bool) -> Word:
    """Returns the health report's word for a part that answers or not."""
    return "ok" if is_ok else "unreachable"


def status_of(is_whole: bool, holding: Holding | None, attention: Sequence[str]) -> Status:
    """Returns the status of a consumer, from its needs, its holds, and the tasks for a person."""
    if not is_whole or (holding is not None and holding.is_outage):
        return "degraded"
    return "ok" if holding is None and not attention else "attention"


def http_status(report: WithStatus) -> int:
    """Returns 503 for a degraded report, else 200."""
    return 503 if report.status == "degraded" else 200
