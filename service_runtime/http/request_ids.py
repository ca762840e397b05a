"""Assigns an id to each request: the value of its X-Request-Id header, or a new id. The response and all log lines contain it."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final
from uuid import UUID

from flask import Flask, Response, g, request

from service_runtime.observing.log_context import current_ids, logging_about

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
