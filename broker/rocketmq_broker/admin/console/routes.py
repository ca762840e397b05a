"""Routes requests to screens and actions, and renders failures as pages."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from starlette.datastructures import URL, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.form_action import NOT_REFUSED, FormAction, RefusedForm
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

_OLD_FORM: Final = "This page had expired, so nothing was done. Check the form and submit it again."

logger = logging.getLogger(__name__)


class ConsoleRoutes:
    """The routes of screens and actions."""

    def __init__(self, brokers: Brokers, pages: Pages, streams: Streams, now_ms: Callable[[], int]) -> None:
        self._brokers = brokers
        self._pages = pages
        self._streams = streams
        self._now_ms = now_ms
        self._screens: dict[str, Screen] = {}
        """Maps paths to screens."""

    def screen_routes(self, screens: Iterable[Screen]) -> list[Route]:
        """Returns a route for each screen, and one for its live part at `/live` below the screen's path."""
        routes = []
        for screen in screens:
            self._screens[screen.path] = screen
            routes.append(Route(screen.path, self._page_of(screen), methods=["GET"]))
            if screen.refresh_s is not None:
                routes.append(Route(live_path(screen), self._stream_of(screen), methods=["GET"]))
        return routes

    def action_routes(self, actions: Iterable[FormAction]) -> list[Route]:
        """Returns a route for each action, for POST only. The pages with the forms are screens."""
        return [Route(action.path, self._handler_of(action), methods=["POST"]) for action in actions]

    @property
    def exception_handlers(self) -> Mapping[Any, Any]:
        """Returns handlers that render failures as pages without a traceback."""
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
        """Renders the screen at `address`. A rejected form keeps its values, and the refusal is shown above it."""
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
                return PlainTextResponse("Too many live pages: reload this page to update it.\n", 503)
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

    def _handler_of(self, action: FormAction) -> Any:
        async def do(request: Request) -> Response:
            form = {name: str(value) for name, value in (await request.form()).items()}
            has_valid_token = has_token(request, form.pop("csrf", ""))
            visit = Visit(self._brokers, form, self._now_ms)
            if not has_valid_token:
                return await self._refused(request, action, visit, _NO_TOKEN, _OLD_FORM)
            try:
                result = await action.do(visit)
            except AdminError as error:
                status = _REFUSED_FORM if (status := _status_of(error)) == _REFUSED else status
                return await self._refused(request, action, visit, status, _sentence(error))
            logger.info("console action by %s: %s", request.client.host if request.client else "?", printable(result))
            if action.shows_result:
                request.session["result"] = result
            return RedirectResponse(action.back_to(visit), 303)

        return do

    async def _refused(self, request: Request, action: FormAction, visit: Visit, status: int, refusal: str) -> Response:
        """Renders the page with the rejected form. If that fails, renders a page that can submit the form again."""
        address, form = URL((action.form_at or action.back_to)(visit)), RefusedForm(action.path, visit.query)
        screen = self._screens[address.path]
        page = Visit(self._brokers, QueryParams(address.query), self._now_ms)
        try:
            facts = await screen.find(page)
        except AdminError:
            return self._pages.page(
                request, "trouble.html", title="Error", status=status, address=address, sentence=refusal, again=form
            )
        return self._drawn(request, screen, page, facts, address, status=status, refusal=refusal, form=form)

    def _trouble(self, request: Request, status: int, sentence: str) -> Response:
        return self._pages.page(request, "trouble.html", title="Error", status=status, sentence=sentence, again=None)

    async def _on_admin_error(self, request: Request, error: AdminError) -> Response:
        return self._trouble(request, _status_of(error), _sentence(error))

    async def _on_http_error(self, request: Request, error: HTTPException) -> Response:
        sentence = "Page not found." if error.status_code == 404 else f"{error.detail}."
        return self._trouble(request, error.status_code, sentence)

    async def _on_any_error(self, request: Request, error: Exception) -> Response:
        response = self._trouble(request, 500, "This page failed because of a bug in the console; see its log.")
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
