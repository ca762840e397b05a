"""Maps requests to screens and deeds, and failures to pages with a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from starlette.datastructures import URL, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.deed import NOT_REFUSED, Deed, RefusedForm
from rocketmq_broker.admin.console.guard import SECURITY_HEADERS
from rocketmq_broker.admin.console.live import Streams
from rocketmq_broker.admin.console.pages import Pages
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.tokens import has_token
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import AdminError, CannotAsk, NotSupported
from rocketmq_broker.message.text.printable import printable

_REFUSED: Final = 404
_REFUSED_FORM: Final = 422
_NO_TOKEN: Final = 403
_NOT_SUPPORTED: Final = 501
_CANNOT_ASK: Final = 503

_OLD_FORM: Final = "This page was older than the console's session, and nothing was done. Look at the form and send it again."

logger = logging.getLogger(__name__)


class ConsoleRoutes:
    """The routes of screens and deeds."""

    def __init__(self, brokers: Brokers, pages: Pages, streams: Streams, now_ms: Callable[[], int]) -> None:
        self._brokers = brokers
        self._pages = pages
        self._streams = streams
        self._now_ms = now_ms
        self._screens: dict[str, Screen] = {}
        """By path: the screens with a route."""

    def of_screens(self, screens: Iterable[Screen]) -> list[Route]:
        """Returns a route for each screen at its path, and for its live part at `live` below."""
        routes = []
        for screen in screens:
            self._screens[screen.path] = screen
            routes.append(Route(screen.path, self._page_of(screen), methods=["GET"]))
            if screen.refresh_s is not None:
                routes.append(Route(live_path(screen), self._stream_of(screen), methods=["GET"]))
        return routes

    def of_deeds(self, deeds: Iterable[Deed]) -> list[Route]:
        """Returns a route for each deed at its path, by POST only. The pages with their forms are among the screens."""
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
            return self._drawn(request, screen, visit, facts, request.url)

        return page

    def _drawn(
        self, request: Request, screen: Screen, visit: Visit, facts: Any, address: URL,
        *, status: int = 200, refusal: str = "", form: RefusedForm = NOT_REFUSED,
    ) -> Response:  # fmt: skip
        """Renders the screen at that address. A refused form keeps its fields, and the refusal stands above it."""
        heading = screen.heading(visit) if screen.heading is not None else screen.title
        live = f"{live_path(screen)}?{address.query}" if screen.refresh_s is not None else None
        return self._pages.page(
            request, "screen.html", title=screen.title, status=status, address=address, heading=heading, live=live,
            part=screen.template, facts=facts, failures=visit.failures, query=visit.query, refusal=refusal, kept=form.kept,
        )  # fmt: skip

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
            csrf=request.session.get("csrf", ""), kept=NOT_REFUSED.kept,
        )  # fmt: skip

    def _doing(self, deed: Deed) -> Any:
        async def do(request: Request) -> Response:
            form = {name: str(value) for name, value in (await request.form()).items()}
            is_of_this_page = has_token(request, form.pop("csrf", ""))
            visit = Visit(self._brokers, form, self._now_ms)
            if not is_of_this_page:
                return await self._refused(request, deed, visit, _NO_TOKEN, _OLD_FORM)
            try:
                said = await deed.do(visit)
            except AdminError as error:
                status = _REFUSED_FORM if (status := _status_of(error)) == _REFUSED else status
                return await self._refused(request, deed, visit, status, _sentence(error))
            logger.info("asked for by %s: %s", request.client.host if request.client else "?", printable(said))
            if deed.is_said:
                request.session["said"] = said
            return RedirectResponse(deed.back_to(visit), 303)

        return do

    async def _refused(self, request: Request, deed: Deed, visit: Visit, status: int, refusal: str) -> Response:
        """Renders the page with the form, or, if that page cannot be drawn now, one that sends the same form again."""
        address, form = URL((deed.form_at or deed.back_to)(visit)), RefusedForm(deed.path, visit.query)
        screen = self._screens[address.path]
        page = Visit(self._brokers, QueryParams(address.query), self._now_ms)
        try:
            facts = await screen.find(page)
        except AdminError:
            return self._pages.page(
                request, "trouble.html", title="Trouble", status=status, address=address, sentence=refusal, again=form
            )
        return self._drawn(request, screen, page, facts, address, status=status, refusal=refusal, form=form)

    def _trouble(self, request: Request, status: int, sentence: str) -> Response:
        return self._pages.page(request, "trouble.html", title="Trouble", status=status, sentence=sentence, again=None)

    async def _on_admin_error(self, request: Request, error: AdminError) -> Response:
        return self._trouble(request, _status_of(error), _sentence(error))

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


def _status_of(error: AdminError) -> int:
    if isinstance(error, NotSupported):
        return _NOT_SUPPORTED
    return _CANNOT_ASK if isinstance(error, CannotAsk) else _REFUSED


def _sentence(error: AdminError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
