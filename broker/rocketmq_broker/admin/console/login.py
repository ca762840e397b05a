"""The password login. A signed cookie identifies visitors who are logged in. Repeated wrong passwords block an address."""

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
_IS_LOGGED_IN: Final = "is_logged_in"
MAX_GUESSES: Final = 5
_BLOCK_S: Final = 60.0
_MAX_BLOCK_S: Final = 3600.0
_MAX_DOUBLINGS: Final = 6
_MAX_ADDRESSES: Final = 10_000
"""The maximum number of addresses to remember. The address whose last wrong guess is the oldest is removed first."""


@dataclass(slots=True)
class _Guesses:
    """The number of wrong passwords that an address has sent since its last correct password."""

    wrong: int = 0
    blocked_until_s: float = 0.0


class PasswordCheck:
    """Checks passwords.

    After five wrong passwords, the sender's address is blocked for a minute. Each further wrong password doubles the time, up to
    an hour.
    """

    def __init__(self, password: str, world: World) -> None:
        self._password = password
        self._world = world
        self._guesses: OrderedDict[str, _Guesses] = OrderedDict()
        """Maps addresses to their guesses, ordered by the time of the last guess."""

    def blocked_for_s(self, address: str) -> float:
        """Returns the remaining seconds for which the address is blocked; 0 if it is not blocked."""
        guesses = self._guesses.get(_network(address))
        return max(0.0, guesses.blocked_until_s - self._world.steady_s()) if guesses is not None else 0.0

    def accepts(self, password: str, address: str) -> bool:
        """Returns whether the password is correct. Counts a wrong password for the address."""
        network = _network(address)
        if hmac.compare_digest(password.encode(), self._password.encode()):
            self._guesses.pop(network, None)
            return True
        guesses = self._guesses.setdefault(network, _Guesses())
        self._guesses.move_to_end(network)
        guesses.wrong += 1
        if guesses.wrong >= MAX_GUESSES:
            block_s = min(_BLOCK_S * 2 ** min(guesses.wrong - MAX_GUESSES, _MAX_DOUBLINGS), _MAX_BLOCK_S)
            guesses.blocked_until_s = self._world.steady_s() + block_s
        if len(self._guesses) > _MAX_ADDRESSES:
            self._guesses.popitem(last=False)
        return False


def _network(address: str) -> str:
    """Returns the address itself if it is IPv4, or the /64 network of an IPv6 address.

    One client may own all addresses of a /64 network.
    """
    return ":".join(address.split(":")[:4]) if ":" in address and "." not in address else address


class RequireLogin:
    """Middleware that redirects visitors who are not logged in to the login page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards requests for the login page and static files, and requests of visitors who are logged in.

        Redirects all other page requests to the login page. Responds with status 401 to live updates and submitted forms.
        """
        if scope["type"] != "http" or scope["session"].get(_IS_LOGGED_IN) or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        response: Response = PlainTextResponse("Log in first, at /login.\n", 401)
        if scope["method"] == "GET" and not scope["path"].endswith("/live"):
            response = RedirectResponse(url(PATH, next=_path_and_query(scope)), 303)
        await response(scope, receive, send)


class Login:
    """The login page."""

    def __init__(self, check: PasswordCheck, pages: Pages) -> None:
        self._check = check
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """Shows the login form."""
        return self._form(request, None)

    async def submit(self, request: Request) -> Response:
        """Logs the visitor in, or shows the form with the reason for the refusal."""
        form = await request.form()
        if not has_token(request, str(form.get("csrf", ""))):
            return self._form(request, "The page has expired: enter the password again.", 403)
        address = request.client.host if request.client is not None else ""
        if (block_s := self._check.blocked_for_s(address)) > 0:
            minutes = math.ceil(block_s / 60)
            wait = "a minute" if minutes == 1 else f"{minutes} minutes"
            return self._form(request, f"Too many wrong passwords from {address}. Wait {wait}, then try again.", 429)
        if not self._check.accepts(str(form.get("password", "")), address):
            return self._form(request, "Wrong password.", 403)
        request.session[_IS_LOGGED_IN] = True
        return RedirectResponse(path_within(str(form.get("next", ""))), 303)

    def _form(self, request: Request, refusal: str | None, status: int = 200) -> Response:
        following = path_within(request.query_params.get("next", ""))
        return self._pages.page(request, "login.html", title="Password", status=status, refusal=refusal, next=following)


def path_within(path: str) -> str:
    """Returns the path if it belongs to this console; otherwise the path of the home page."""
    is_within = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_within else "/"


def _is_open(path: str) -> bool:
    return path == PATH or path.startswith("/static/")


def _path_and_query(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])
