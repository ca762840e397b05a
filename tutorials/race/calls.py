"""Calls between the order process and the credit process: one sends a request to the other and waits for the response.

The calls use the network of the run, with this project's frames, so that the network's faults affect them too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.remoting.client import RefusingHandler, RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.errors import RemotingError
from rocketmq_broker.remoting.server import RemotingServer
from rocketmq_broker.world import current_world

CALL_TIMEOUT_MS: Final = 3000
_CALL: Final = 9000
"""The request code of a call. RocketMQ does not use this code."""

Work = Callable[[str], Awaitable[str]]
"""A coroutine function that handles a call: it receives the text of the request and returns the text of the response."""


class CallFailed(Exception):
    """Raised if a call has no successful response. The called process may have done the work nevertheless."""


@dataclass(slots=True)
class Service:
    """A service that other processes call. The object is kept when the process that serves it is restarted."""

    address: str | None = None
    """The address of the newest process that serves it, or None before the first one."""
    answers_to_lose: int = 0
    """The number of responses that are lost after the work is done."""


class Calls:
    """The calls that one process serves and makes, from its start to its end."""

    def __init__(self) -> None:
        """Uses the network of the current context. Opens no port and no connection yet."""
        self._client = RemotingClient()
        self._server: RemotingServer | None = None
        self._handler: _CallHandler | None = None

    async def serve(self, service: Service, work: Work) -> None:
        """Serves the calls of `service` with `work` until the process ends."""
        world = current_world()
        self._handler = _CallHandler(service, work)
        self._server = RemotingServer(world.local_address(), 0, self._handler, steady_ns=world.steady_ns)
        await self._server.start()
        service.address = f"{self._server.host}:{self._server.port}"

    async def call(self, service: Service, text: str) -> str:
        """Calls `service` and returns the response. Raises CallFailed."""
        if service.address is None:
            raise CallFailed("the service has never started")
        try:
            answer = await self._client.invoke(service.address, _CALL, body=text.encode(), timeout_ms=CALL_TIMEOUT_MS)
        except RemotingError as error:
            raise CallFailed(str(error)) from None
        if answer.code != ResponseCode.SUCCESS:
            raise CallFailed(answer.remark)
        return answer.body.decode()

    async def end(self) -> None:
        """Closes all connections and the port, as the operating system does when the process ends."""
        await self._client.close()
        if self._server is not None and self._handler is not None:
            self._server.stop_listening()
            await self._handler.end()
            await self._server.stop()


class _CallHandler(RefusingHandler):
    """Handles each call in its own task."""

    def __init__(self, service: Service, work: Work) -> None:
        self._service = service
        self._work = work
        self._tasks: set[asyncio.Task[None]] = set()

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """Starts a task for each request."""
        for request in requests:
            task = asyncio.get_running_loop().create_task(self._answer(connection, request))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Cancels the tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, connection: Connection, request: RemotingCommand) -> None:
        try:
            text = await self._work(request.body.decode())
        except Exception as error:
            connection.send(encode_response(request, ResponseCode.SYSTEM_ERROR, remark=str(error)))
            return
        if self._service.answers_to_lose:
            self._service.answers_to_lose -= 1
            return
        connection.send(encode_response(request, ResponseCode.SUCCESS, body=text.encode()))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a dead process raises ProcessDied and does not respond
