"""The password check: a signed cookie marks visitors who gave it; repeated guesses are slowed down."""

from __future__ import annotations

import hmac
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from rocketmq_broker.admin.console.pages import Pages, url
from rocketmq_broker.admin.console.tokens import has_token
from rocketmq_broker.world import World

PATH: Final = "/login"
_IS_IN: Final = "is_in"
MAX_GUESSES: Final = 5
_SHUT_S: Final = 60.0
_MAX_SHUT_S: Final = 3600.0
_MAX_DOUBLINGS: Final = 6
_MAX_ADDRESSES: Final = 10_000
"""More are forgotten, the one that guessed longest ago first."""


@dataclass(slots=True)
class _Guesses:
    """The wrong passwords from one address since its last right one."""

    wrong: int = 0
    shut_until_s: float = 0.0


class LoginDoor:
    """Compares passwords. After five wrong ones it refuses their address for a minute, then two, up to an hour."""

    def __init__(self, password: str, world: World) -> None:
        self._password = password
        self._world = world
        self._guesses: OrderedDict[str, _Guesses] = OrderedDict()
        """By address, the one that guessed last at the end."""

    def shut_for_s(self, address: str) -> float:
        """Returns for how many seconds the address is refused; 0 if it is not."""
        guesses = self._guesses.get(_network(address))
        return max(0.0, guesses.shut_until_s - self._world.steady_s()) if guesses is not None else 0.0

    def opens_for(self, password: str, address: str) -> bool:
        """Returns whether the password is right. Counts a wrong one against the address."""
        network = _network(address)
        if hmac.compare_digest(password.encode(), self._password.encode()):
            self._guesses.pop(network, None)
            return True
        guesses = self._guesses.setdefault(network, _Guesses())
        self._guesses.move_to_end(network)
        guesses.wrong += 1
        if guesses.wrong >= MAX_GUESSES:
            shut_s = min(_SHUT_S * 2 ** min(guesses.wrong - MAX_GUESSES, _MAX_DOUBLINGS), _MAX_SHUT_S)
            guesses.shut_until_s = self._world.steady_s() + shut_s
        if len(self._guesses) > _MAX_ADDRESSES:
            self._guesses.popitem(last=False)
        return False


def _network(address: str) -> str:
    """Returns an IPv4 address, or the network of an IPv6 address: one client may own all of it."""
    return ":".join(address.split(":")[:4]) if ":" in address and "." not in address else address


class LoginWall:
    """Sends visitors without a login to the login page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on requests for the login page and the style, and those of visitors with a login."""
        if scope["type"] != "http" or scope["session"].get(_IS_IN) or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        response: Response = PlainTextResponse("Give the password first, at /login.\n", 401)
        if scope["method"] == "GET" and not scope["path"].endswith("/live"):
            response = RedirectResponse(url(PATH, next=_path_and_query(scope)), 303)
        await response(scope, receive, send)


class Login:
    """The login page."""

    def __init__(self, door: LoginDoor, pages: Pages) -> None:
        self._door = door
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """Shows the form."""
        return self._form(request, None)

    async def enter(self, request: Request) -> Response:
        """Lets the visitor in, or says why not."""
        form = await request.form()
        if not has_token(request, str(form.get("csrf", ""))):
            return self._form(request, "The page was too old: give the password again.", 403)
        address = request.client.host if request.client is not None else ""
        if (shut_s := self._door.shut_for_s(address)) > 0:
            minutes = math.ceil(shut_s / 60)
            wait = "a minute" if minutes == 1 else f"{minutes} minutes"
            return self._form(request, f"There were too many wrong passwords from {address}. Wait {wait}, then try again.", 429)
        if not self._door.opens_for(str(form.get("password", "")), address):
            return self._form(request, "That is not the password.", 403)
        request.session[_IS_IN] = True
        return RedirectResponse(path_within(str(form.get("next", ""))), 303)

    def _form(self, request: Request, refusal: str | None, status: int = 200) -> Response:
        following = path_within(request.query_params.get("next", ""))
        return self._pages.page(request, "login.html", title="Password", status=status, refusal=refusal, next=following)


def path_within(path: str) -> str:
    """Returns the path if it leads to a page of this console; else the first page."""
    is_within = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_within else "/"


def _is_open(path: str) -> bool:
    return path == PATH or path.startswith("/static/")


def _path_and_query(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])
