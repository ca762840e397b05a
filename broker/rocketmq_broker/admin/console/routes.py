"""Maps requests to screens and deeds, and failures to pages with a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.deed import Deed
from rocketmq_broker.admin.console.guard import SECURITY_HEADERS
from rocketmq_broker.admin.console.live import Streams
from rocketmq_broker.admin.console.pages import Pages
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.tokens import has_token
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import AdminError, CannotAsk, NotSupported
from rocketmq_broker.message.text.printable import printable

_REFUSED: Final = 404
_NOT_SUPPORTED: Final = 501
_CANNOT_ASK: Final = 503

logger = logging.getLogger(__name__)


class ConsoleRoutes:
    """The routes of screens and deeds."""

    def __init__(self, brokers: Brokers, pages: Pages, streams: Streams, now_ms: Callable[[], int]) -> None:
        self._brokers = brokers
        self._pages = pages
        self._streams = streams
        self._now_ms = now_ms

    def of_screens(self, screens: Iterable[Screen]) -> list[Route]:
        """Returns a route for each screen at its path, and for its live part at `live` below."""
        routes = []
        for screen in screens:
            routes.append(Route(screen.path, self._page_of(screen), methods=["GET"]))
            if screen.refresh_s is not None:
                routes.append(Route(live_path(screen), self._stream_of(screen), methods=["GET"]))
        return routes

    def of_deeds(self, deeds: Iterable[Deed]) -> list[Route]:
        """Returns a route for each deed at its path, by POST only."""
        return [Route(deed.path, self._doing(deed), methods=["POST"]) for deed in deeds]

    @property
    def exception_handlers(self) -> Mapping[Any, Any]:
        """Pages for failures, none with a traceback."""
        return {AdminError: self._on_admin_error, HTTPException: self._on_http_error, Exception: self._on_any_error}

    def _page_of(self, screen: Screen) -> Any:
        async def page(request: Request) -> Response:
            visit = Visit(self._brokers, request.query_params, self._now_ms)
            facts = await screen.find(visit)
            if screen.elsewhere is not None and (address := screen.elsewhere(facts)) is not None:
                return RedirectResponse(address, 303)
            heading = screen.heading(visit) if screen.heading is not None else screen.title
            live = f"{live_path(screen)}?{request.url.query}" if screen.refresh_s is not None else None
            return self._pages.page(
                request, "screen.html", title=screen.title, heading=heading, live=live, part=screen.template, facts=facts,
                failures=visit.failures, query=visit.query,
            )  # fmt: skip

        return page

    def _stream_of(self, screen: Screen) -> Any:
        async def stream(request: Request) -> Response:
            parts = await self._streams.begun(lambda: self._part(screen, request), screen.refresh_s or 1.0)
            if parts is None:
                return PlainTextResponse("Too many pages are live: reload this one by hand.\n", 503)
            return StreamingResponse(parts, media_type="text/event-stream")

        return stream

    async def _part(self, screen: Screen, request: Request) -> str:
        visit = Visit(self._brokers, request.query_params, self._now_ms)
        try:
            facts = await screen.find(visit)
        except AdminError as error:
            return self._pages.part(request, "trouble_part.html", sentence=_sentence(error))
        return self._pages.part(
            request, "live_part.html", part=screen.template, facts=facts, failures=visit.failures, query=visit.query,
            csrf=request.session.get("csrf", ""),
        )  # fmt: skip

    def _doing(self, deed: Deed) -> Any:
        async def do(request: Request) -> Response:
            form = {name: str(value) for name, value in (await request.form()).items()}
            if not has_token(request, form.pop("csrf", "")):
                return self._trouble(
                    request, 403, "The form is too old, or it is of another site. Go back, reload the page and try again."
                )
            visit = Visit(self._brokers, form, self._now_ms)
            said = await deed.do(visit)
            logger.info("asked for by %s: %s", request.client.host if request.client else "?", printable(said))
            if deed.is_said:
                request.session["said"] = said
            return RedirectResponse(deed.back_to(visit), 303)

        return do

    def _trouble(self, request: Request, status: int, sentence: str) -> Response:
        return self._pages.page(request, "trouble.html", title="Trouble", status=status, sentence=sentence)

    async def _on_admin_error(self, request: Request, error: AdminError) -> Response:
        status = _CANNOT_ASK if isinstance(error, CannotAsk) else _REFUSED
        return self._trouble(request, _NOT_SUPPORTED if isinstance(error, NotSupported) else status, _sentence(error))

    async def _on_http_error(self, request: Request, error: HTTPException) -> Response:
        sentence = "There is no such page." if error.status_code == 404 else f"{error.detail}."
        return self._trouble(request, error.status_code, sentence)

    async def _on_any_error(self, request: Request, error: Exception) -> Response:
        response = self._trouble(request, 500, "This page failed. That is a fault of the console; its log says where.")
        response.headers.update(SECURITY_HEADERS)
        return response


def live_path(screen: Screen) -> str:
    """Returns the path of a screen's live part."""
    return f"{screen.path.rstrip('/')}/live"


def _sentence(error: AdminError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
