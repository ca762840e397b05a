"""Protects the console from cross-site requests, DNS rebinding, oversized bodies and script injection."""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocketmq_broker.admin.console.settings import ConsoleSettings
from rocketmq_broker.known_hosts import KnownHosts

MAX_BODY_BYTES: Final = 64 * 1024
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class FormTooLong(Exception):
    """Raised for a request body that is longer than MAX_BODY_BYTES."""


class Guard:
    """The outermost middleware of the console. It checks each request and adds security headers to each response."""

    def __init__(self, app: ASGIApp, settings: ConsoleSettings) -> None:
        self._app = app
        self._hosts = KnownHosts(settings.host, knows_any_name=settings.password is not None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rejects requests with an unknown Host, from other sites or with a body that is too long. Forwards all others."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, _with_security_headers(send))
            return
        try:
            await self._app(scope, _bounded(receive), _with_security_headers(send))
        except FormTooLong:
            await PlainTextResponse("The form is too long.\n", 413)(scope, receive, _with_security_headers(send))

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        names = ("host", "origin", "sec-fetch-site")
        refusal = self._hosts.refusal(method, *(headers.get(name) for name in names))
        return None if refusal is None else PlainTextResponse(f"{refusal.detail}\n", refusal.status)


def _bounded(receive: Receive) -> Receive:
    left = MAX_BODY_BYTES

    async def receive_bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise FormTooLong
        return message

    return receive_bounded


def _with_security_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
        await send(message)

    return send_with_headers
