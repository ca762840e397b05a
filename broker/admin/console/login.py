"""The password: who has given it carries a signed cookie; whoever guesses is slowed down."""

from __future__ import annotations

import hmac
from collections import deque
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.admin.console.pages import Pages, url
from broker.admin.console.tokens import has_token
from broker.world import World

PATH: Final = "/login"
_IS_IN: Final = "is_in"
MOST_GUESSES: Final = 5
_GUESSES_WITHIN_S: Final = 60.0


class Door:
    """Compares passwords: at most five wrong ones a minute, from everybody together."""

    def __init__(self, password: str, world: World) -> None:
        self._password = password
        self._world = world
        self._wrong_at_s: deque[float] = deque(maxlen=MOST_GUESSES)

    @property
    def is_shut(self) -> bool:
        """Whether no password is looked at for the moment."""
        oldest_s = self._wrong_at_s[0] if len(self._wrong_at_s) == MOST_GUESSES else None
        return oldest_s is not None and self._world.steady_s() - oldest_s < _GUESSES_WITHIN_S

    def opens_for(self, password: str) -> bool:
        """Whether it is the password; a wrong one is counted."""
        is_right = hmac.compare_digest(password.encode(), self._password.encode())
        if not is_right:
            self._wrong_at_s.append(self._world.steady_s())
        return is_right


class LoginWall:
    """Sends everybody to the login page who has not given the password yet."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the login page and the style through; hands on the requests of those who are in."""
        if scope["type"] != "http" or scope["session"].get(_IS_IN) or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        response: Response = PlainTextResponse("Give the password first, at /login.\n", 401)
        if scope["method"] == "GET" and not scope["path"].endswith("/live"):
            response = RedirectResponse(url(PATH, next=_path_and_query(scope)), 303)
        await response(scope, receive, send)


class Login:
    """The login page."""

    def __init__(self, door: Door, pages: Pages) -> None:
        self._door = door
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """The form."""
        return self._form(request, None)

    async def enter(self, request: Request) -> Response:
        """Lets the visitor in, or says why not."""
        form = await request.form()
        if not has_token(request, str(form.get("csrf", ""))):
            return self._form(request, "The page was too old: give the password again.", 403)
        if self._door.is_shut:
            return self._form(request, "There were too many wrong passwords. Wait a minute, then try again.", 429)
        if not self._door.opens_for(str(form.get("password", ""))):
            return self._form(request, "That is not the password.", 403)
        request.session[_IS_IN] = True
        return RedirectResponse(path_within(str(form.get("next", ""))), 303)

    def _form(self, request: Request, refusal: str | None, status: int = 200) -> Response:
        following = path_within(request.query_params.get("next", ""))
        return self._pages.page(request, "login.html", title="Password", status=status, refusal=refusal, next=following)


def path_within(path: str) -> str:
    """The path, if it leads to a page of this console; the first page otherwise."""
    is_within = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_within else "/"


def _is_open(path: str) -> bool:
    return path == PATH or path.startswith("/static/")


def _path_and_query(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])
