"""A small HTTP server for commands on loopback. It handles one request per connection, with JSON arguments and responses.

The server refuses requests from other origins and to other host names, so that web pages in a browser cannot send commands.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from rocketmq_broker.known_hosts import KnownHosts
from rocketmq_broker.protocol.errors import UNREADABLE_JSON
from rocketmq_broker.testing.control import BAD_REQUEST, Arguments, Control, Json

logger = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
_TIMEOUT_S: Final = 10.0
"""The time limit, in seconds, for receiving the head of a request. The same limit applies to its body."""
_MAX_HEAD_LENGTH: Final = 16 * 1024
_MAX_BODY_LENGTH: Final = 64 * 1024
_HOSTS: Final = KnownHosts(LOOPBACK)


class ControlServer:
    """An HTTP server that listens between `start` and `stop`."""

    def __init__(self, control: Control) -> None:
        """Creates a stopped server. `control` executes the commands."""
        self._control = control
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> str:
        """Starts listening on loopback. Returns the URL. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port, limit=_MAX_HEAD_LENGTH)
        return f"http://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            status, answer = await self._answer(reader)
            body = msgspec.json.encode(answer)
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except OSError:
            pass  # the client is gone
        except Exception:
            logger.exception("a command failed")
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, Json]:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, headers = _parsed(head.decode("latin-1"))
            if refusal := _HOSTS.refusal(method, headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")):
                return refusal.status, {
                    "error": f"commands must be sent to {LOOPBACK} by programs on this machine: {refusal.detail}"
                }
            async with asyncio.timeout(_TIMEOUT_S):
                body = await reader.readexactly(_body_length(headers))
            arguments = _arguments(target, body)
        except (ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            return BAD_REQUEST, {"error": f"invalid request: {error}"}
        return await self._control.answer(method, unquote(urlsplit(target).path).strip("/"), arguments)


def _parsed(head: str) -> tuple[str, str, dict[str, str]]:
    """Returns the method, the target and the headers by lower-case name. Raises ValueError for a malformed head."""
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    return method, target, {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _body_length(headers: dict[str, str]) -> int:
    """Returns the body's length in bytes, from Content-Length. Raises ValueError if it is invalid or too large."""
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= _MAX_BODY_LENGTH:
        raise ValueError(f"body too long: {length} bytes, at most {_MAX_BODY_LENGTH}")
    return length


def _arguments(target: str, body: bytes) -> Arguments:
    """Returns the arguments from the query string and the JSON body. Raises ValueError if the body is not a JSON object."""
    try:
        given: Json = msgspec.json.decode(body) if body.strip() else {}
    except UNREADABLE_JSON as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError(f"the body must be a JSON object, not {body[:40].decode(errors='replace')!r}")
    return {**dict(parse_qsl(urlsplit(target).query)), **given}
