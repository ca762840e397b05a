"""Runs the console's server until SIGINT or SIGTERM."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette

from rocketmq_broker.admin.console.live import Streams
from rocketmq_broker.admin.console.patience import MAX_CONNECTIONS, PatientProtocol
from rocketmq_broker.admin.console.settings import ConsoleSettings, UnusableSettings
from rocketmq_broker.platform.event_loop import called_on_stop_signals

_FORWARDED: Final = "FORWARDED_ALLOW_IPS"
_STOP_WITHIN_S: Final = 2


class _Server(uvicorn.Server):
    """A server that closes live pages when it stops, because uvicorn would wait for them."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    def stop(self) -> None:
        """Stops the server. `serve` returns soon afterwards."""
        self._streams.stopping.set()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stops the server when it receives a signal. Unlike uvicorn, it does not raise the signal again afterwards."""
        with called_on_stop_signals(asyncio.get_running_loop(), self.stop):
            yield


async def serve(app: Starlette, settings: ConsoleSettings, on_ready: Callable[[str], None]) -> None:
    """Serves the application until SIGINT or SIGTERM. Calls `on_ready` with the address once the server listens.

    Raises UnusableSettings if the server cannot listen on its address.
    """
    server = _Server(server_config(app), app.state.streams)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    with server.capture_signals():
        sockets = await _bound(settings)
        on_ready(f"http://{host}:{sockets[0].getsockname()[1]}")
        await server.serve(sockets=sockets)


def server_config(app: Starlette, connection: type[PatientProtocol] = PatientProtocol) -> uvicorn.Config:
    """Returns uvicorn's configuration.

    A proxy's headers with the visitor's address are trusted only if FORWARDED_ALLOW_IPS is set.
    """
    return uvicorn.Config(
        app,
        http=connection,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        proxy_headers=_FORWARDED in os.environ,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_WITHIN_S,
    )


async def _bound(settings: ConsoleSettings) -> list[Any]:
    """Returns listening sockets. asyncio binds them, because uvicorn would exit the program on a failure."""
    loop = asyncio.get_running_loop()
    try:
        bound = await loop.create_server(asyncio.Protocol, settings.host, settings.port, start_serving=False)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnusableSettings(f"the console cannot listen on {settings.host}:{settings.port}: {reason}") from None
    sockets = [sock.dup() for sock in bound.sockets]
    bound.close()
    for sock in sockets:
        sock.listen()
    return sockets
