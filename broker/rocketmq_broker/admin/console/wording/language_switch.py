"""Switches the language by `?lang=zh` on any page, and stores the choice in a cookie."""

from typing import Final

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rocketmq_broker.admin.console.wording.words import ENGLISH, LANGUAGES

PARAMETER: Final = "lang"
_COOKIE: Final = "console-language"
_COOKIE_AGE_S: Final = 365 * 24 * 3600


def language_of(request: Request) -> str:
    """Returns the language that the visitor has chosen, or English by default."""
    chosen = request.cookies.get(_COOKIE, ENGLISH)
    return chosen if chosen in LANGUAGES else ENGLISH


def in_other_languages(request: Request, page: URL) -> list[tuple[str, str, str]]:
    """Returns all other languages, each with its code, its name and the address of the page in that language."""
    query = page.remove_query_params(PARAMETER).query
    path = "" if page.path == request.url.path else page.path  # the path of a request may begin with another host
    return [
        (language, name, f"{path}?{query}&{PARAMETER}={language}" if query else f"{path}?{PARAMETER}={language}")
        for language, name in LANGUAGES.items()
        if language != language_of(request)
    ]


class LanguageSwitch:
    """Middleware for requests with the parameter `lang`. It sets the cookie and redirects to the page without the parameter."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request that names a known language, and forwards all others."""
        language = _language_named_by(scope)
        if language is None:
            await self._app(scope, receive, send)
            return
        query = URL(scope=scope).remove_query_params(PARAMETER).query
        response = RedirectResponse(f"{scope['path']}?{query}" if query else scope["path"], 303)
        response.set_cookie(_COOKIE, language, max_age=_COOKIE_AGE_S, httponly=True, samesite="strict")
        await response(scope, receive, send)


def _language_named_by(scope: Scope) -> str | None:
    is_for_a_page = scope["type"] == "http" and scope["method"] == "GET" and not scope["path"].startswith(("//", "/\\"))
    language = Request(scope).query_params.get(PARAMETER) if is_for_a_page else None
    return language if language in LANGUAGES else None
