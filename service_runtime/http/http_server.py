"""Runs Waitress. When it stops, clients are sent away first, and running requests finish within a time limit."""

import logging
import resource
import threading
from typing import Any, Final

from flask import Flask
from waitress import wasyncore  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.server import BaseWSGIServer, create_server  # type: ignore[import-untyped]
from waitress.task import WSGITask  # type: ignore[import-untyped]

from rocketmq_broker.world import World
from service_runtime.http.listening import listen_on
from service_runtime.settings.common import HttpSettings

_MAX_BODY_BYTES: Final = 1024 * 1024
"""The maximum size of a body in bytes.

The server closes the connection if the body is larger. The application has a lower limit, above which it sends an error response.
"""
_MAX_HEADER_BYTES: Final = 64 * 1024
_MAX_CONNECTIONS: Final = 1_000
_IDLE_S: Final = 60
"""The time in seconds after which a connection is closed if it receives no byte and has no running request."""
_LOOK_FOR_IDLE_EVERY_S: Final = 5
_LOOK_EVERY_S: Final = 0.02
_THREADS_END_WITHIN_S: Final = 1.0

logger = logging.getLogger(__name__)


class _Task(WSGITask):  # type: ignore[misc]
    """A request. While the server is leaving, the response says that its connection ends, and ends it."""

    def build_response_header(self) -> Any:
        """Returns the status line and the headers."""
        if self.channel.server.leaving.is_set():
            self.request.headers["CONNECTION"] = "close"
        return super().build_response_header()


class _Connection(HTTPChannel):  # type: ignore[misc]
    """A connection of a client."""

    task_class = _Task


class HttpServer:
    """Runs Waitress in a thread. The constructor binds the port, and `start` serves requests."""

    def __init__(self, app: Flask, settings: HttpSettings, world: World) -> None:
        """Listens on all addresses of the host in the settings. Raises CannotStart if that fails."""
        sockets = listen_on(settings.http_host, settings.http_port)
        self._drain_s, self._stop_timeout_s = settings.drain_s, settings.stop_timeout_s
        self._now_s, self._sleep = world.steady_s, world.sleep
        self._open: dict[int, Any] = {}
        self._server = create_server(
            app,
            map=self._open,
            sockets=sockets,
            threads=settings.http_threads,
            connection_limit=_connection_limit(),
            channel_timeout=_IDLE_S,
            cleanup_interval=_LOOK_FOR_IDLE_EVERY_S,
            max_request_body_size=_MAX_BODY_BYTES,
            max_request_header_size=_MAX_HEADER_BYTES,
            asyncore_use_poll=True,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        self._listeners = [opened for opened in self._open.values() if isinstance(opened, BaseWSGIServer)]
        self._leaving = threading.Event()
        for listener in self._listeners:
            listener.channel_class, listener.leaving = _Connection, self._leaving
        shown_port = sockets[0].getsockname()[1]
        self.url = f"http://{_in_url(settings.http_host)}:{shown_port}"
        self.addresses = [f"{_in_url(listener.getsockname()[0])}:{shown_port}" for listener in sockets]
        """The addresses on which the server listens, each as host:port."""
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)

    def start(self) -> None:
        """Starts serving."""
        self._thread.start()

    def drain(self) -> None:
        """Serves for the drain time. Each response ends its connection, so that clients connect to another instance."""
        self._leaving.set()
        if self._drain_s:
            logger.info("stopping: /readyz returns 503; requests are accepted for %g s more", self._drain_s)
        self._sleep(self._drain_s)

    def stop(self) -> None:
        """Stops accepting connections. Returns when all running requests are complete, or after the stop timeout.

        Closes each connection without a running request, so that clients reconnect to another instance. A second call does
        nothing.
        """
        if not self._thread.is_alive():
            return
        self._leaving.set()
        in_loop = self._listeners[0].trigger.pull_trigger
        in_loop(self._stop_listening)
        deadline_s = self._now_s() + self._stop_timeout_s
        while self._connections() and self._now_s() < deadline_s:
            in_loop(self._close_idle)
            self._sleep(_LOOK_EVERY_S)
        cut_off = len(self._connections())
        if cut_off:
            logger.warning(
                "stopped the HTTP server: requests on %d connections did not finish within %g s",
                cut_off,
                self._stop_timeout_s,
            )
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=_THREADS_END_WITHIN_S)
        if not self._server.task_dispatcher.threads:
            # The loop ends when it has nothing left to watch. Working threads need it until then.
            in_loop(self._open.clear)
            self._thread.join(_THREADS_END_WITHIN_S)

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            wasyncore.dispatcher.close(listener)

    def _close_idle(self) -> None:
        for connection in self._connections():
            if not connection.requests and connection.request is None and not connection.total_outbufs_len:
                connection.will_close = True

    def _connections(self) -> list[Any]:
        return [opened for opened in list(self._open.values()) if isinstance(opened, HTTPChannel)]


def _connection_limit() -> int:
    """Returns the maximum number of connections: at most half the limit of open files.

    The connections to databases and the broker also count towards that limit.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MAX_CONNECTIONS, files // 2)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
