"""Checks the CSRF token in each form, which prevents other sites from submitting a form on a visitor's behalf."""

import hmac
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rocketmq_broker.world import World

_TOKEN: Final = "csrf"
_TOKEN_BYTES: Final = 16


class Tokens:
    """Middleware that gives each visitor a token in the signed session cookie."""

    def __init__(self, app: ASGIApp, world: World) -> None:
        self._app = app
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Adds a token to the session if it has none, and forwards the request."""
        if scope["type"] == "http" and _TOKEN not in scope["session"]:
            scope["session"][_TOKEN] = self._world.nonce(_TOKEN_BYTES).hex()
        await self._app(scope, receive, send)


def has_token(request: Request, given: str) -> bool:
    """Returns whether the token in a form equals the visitor's token."""
    return hmac.compare_digest(str(request.session.get(_TOKEN, "")).encode(), given.encode()) and bool(given)
