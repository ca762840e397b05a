"""Waitress, started and stopped so that no request is cut off."""

import threading
import time

from flask import Flask
from waitress.server import create_server  # type: ignore[import-untyped]

from service_runtime.start import CannotStart

_MAX_BODY_BYTES = 1024 * 1024
"""Beyond that the connection is closed; below, the application's own limit gives a readable answer."""


class HttpServer:
    """Waitress in a thread of its own. The port is taken when this is made, requests are served from `start` on."""

    def __init__(self, app: Flask, *, host: str, port: int, threads: int) -> None:
        """Raises CannotStart if the address cannot be listened on."""
        try:
            self._server = create_server(
                app,
                host=host,
                port=port,
                threads=threads,
                max_request_body_size=_MAX_BODY_BYTES,
                ident=None,
                clear_untrusted_proxy_headers=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotStart(f"cannot listen on {host}:{port}: {reason}") from None
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._server.effective_port}"
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Takes no more requests; those that run may finish and be answered within seconds."""
        self._server.accepting = False
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=5)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and any(
            channel.total_outbufs_len for channel in list(self._server.active_channels.values())
        ):
            time.sleep(0.01)
